//! Rows of queues, and their conversions.

use std::collections::BTreeMap;
use std::sync::Arc;

use diesel::prelude::*;
use signalbox_domain::ids::{EntryId, OrgId, PrNumber, QueueId, RepoId, RunId};
use signalbox_domain::ports::{Commit, QueueRef, Version};
use signalbox_domain::queue::{
    Decision, Entry, NumberedEffect, PrState, Queue, ReportedTargets, Stay, TestRun,
};
use signalbox_domain::time::Timestamp;

use super::announcement_store;
use super::audit_log::{AUDIT, AuditRow};
use super::bulk::{Target, bulk_rows};
use super::event_log::{self, EventRow};
use crate::documents::{EffectDocument, Json, MoveDocument, column, encode};
use crate::error::DbError;
use crate::schema::queues;
use crate::sql_types::Sql;
use crate::statement::Statement;

#[derive(Insertable)]
#[diesel(table_name = queues)]
pub(super) struct QueueRow {
    id: Sql<QueueId>,
    org_id: Sql<OrgId>,
    repo_id: Sql<RepoId>,
    branch: String,
    version: i64,
    next_deadline: Option<Sql<Timestamp>>,
    deleted: bool,
    watched_until: Sql<Timestamp>,
    document: Json,
}

impl QueueRow {
    pub(super) fn of(queue: &Queue) -> Result<Self, DbError> {
        let header = &queue.header;
        Ok(Self {
            id: Sql(header.id),
            org_id: Sql(header.org),
            repo_id: Sql(header.repo),
            branch: header.branch.to_string(),
            version: 0,
            next_deadline: None,
            deleted: header.deleted,
            watched_until: Sql(Timestamp::from_unix_micros(0)),
            document: encode(header)?,
        })
    }
}

bulk_rows! {
    /// What a commit changes of its queue. The keys come first: the version and whether it was
    /// deleted are what the step was decided on.
    QUEUE = ChangeRow in "queues" {
        id: QueueId, org_id: OrgId, version: i64, deleted: bool, is_deleted: bool,
        next_deadline: Option<Timestamp>, watched_until: Option<Timestamp>, document: Json,
        next_version: i64,
    } "";
    /// An entry.
    ENTRIES = EntryRow in "entries" {
        queue_id: QueueId, id: EntryId, org_id: OrgId, pr_number: i64, state: &'static str,
        live: bool, run_id: Option<RunId>, updated_at: Timestamp, document: Json,
        submitted_at: Timestamp, head_branch: Option<String>,
    } "ON CONFLICT (queue_id, id) DO UPDATE SET \
        pr_number = excluded.pr_number, state = excluded.state, live = excluded.live, \
        run_id = excluded.run_id, updated_at = excluded.updated_at, \
        document = excluded.document, submitted_at = excluded.submitted_at, \
        head_branch = excluded.head_branch";
    /// A run.
    RUNS = RunRow in "runs" {
        queue_id: QueueId, id: RunId, org_id: OrgId, running: bool, bisection: bool,
        updated_at: Timestamp, document: Json,
    } "ON CONFLICT (queue_id, id) DO UPDATE SET \
        running = excluded.running, bisection = excluded.bisection, \
        updated_at = excluded.updated_at, document = excluded.document";
    /// The targets of a pull request.
    TARGETS = TargetsRow in "impacted_targets" {
        queue_id: QueueId, pr_number: i64, org_id: OrgId, updated_at: Timestamp, document: Json,
    } "ON CONFLICT (queue_id, pr_number) DO UPDATE SET \
        updated_at = excluded.updated_at, document = excluded.document";
    /// A record of the journal.
    JOURNAL = JournalRow in "journal" {
        queue_id: QueueId, number: i64, org_id: OrgId, at: Timestamp, document: Json,
    } "";
    /// A move of an entry.
    MOVES = MoveRow in "entry_moves" {
        queue_id: QueueId, number: i64, ordinal: i64, org_id: OrgId, repo_id: RepoId,
        entry_id: EntryId, at: Timestamp, document: Json, from_state: Option<&'static str>,
        to_state: &'static str, restarted: bool, bisection: bool, after_micros: i64,
        entered_line_at: Option<Timestamp>,
    } "";
    /// An effect.
    OUTBOX = OutboxRow in "outbox" {
        org_id: OrgId, queue_id: QueueId, number: i64, lane: &'static str, run_id: Option<RunId>,
        due_at: Timestamp, attempts: i64, document: Json, request_id: Option<String>,
    } "";
}

/// What a commit sets in its queue.
const QUEUE_SET: &str = "version = new.next_version, deleted = new.is_deleted, \
    next_deadline = new.next_deadline, \
    watched_until = COALESCE(new.watched_until, queues.watched_until), document = new.document";
/// The number of keys of a [`ChangeRow`].
const QUEUE_KEYS: usize = 4;

/// The statements of a commit.
pub(super) struct CommitStatements {
    /// The queue.
    pub(super) queue: QueueRef,
    /// Its version after the commit.
    pub(super) version: Version,
    /// Changes the queue's row if the version is the expected one, and no row otherwise.
    pub(super) first: Statement,
    /// Everything else.
    pub(super) others: Vec<Statement>,
}

impl CommitStatements {
    /// The statements that commit consecutive steps: as many as for one step. Each writes the rows of all
    /// of them; if several steps change the same row, its final state.
    pub(super) fn of(steps: &[Commit<'_>]) -> Result<Self, DbError> {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Err(DbError::corrupt("commit", "it has no step"));
        };
        let key = Key { queue: last.queue.id, org: last.queue.org };
        let version = Version(last.expected.0 + 1);
        let queue = ChangeRow {
            id: key.queue,
            org_id: key.org,
            version: first.expected.0,
            deleted: false,
            is_deleted: last.header.deleted,
            next_deadline: last.next_deadline,
            watched_until: steps.iter().rev().find_map(|step| step.watched_until),
            document: encode(last.header)?,
            next_version: version.0,
        };
        let mut events = Vec::new();
        let (mut entries, mut runs, mut targets) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut journal, mut moves, mut outbox) = (Vec::new(), Vec::new(), Vec::new());
        let (mut shown, mut audit) = (BTreeMap::new(), Vec::new());
        for step in steps {
            let at = step.at;
            entries.extend(step.changes.entries.iter().map(|it| (it.id, (it, at))));
            runs.extend(step.changes.runs.iter().map(|it| (it.id, (it, at))));
            targets.extend(step.changes.targets.iter().map(|(pr, it)| (*pr, (it, at))));
            journal.push(key.journal(step)?);
            moves.extend(key.moves(step)?);
            outbox.extend(each(step.effects, |it| key.effect(step, it))?);
            for pr in step.shown {
                shown.entry(*pr).or_insert(at);
            }
            audit.extend(step.audit.map(AuditRow::of).transpose()?);
            let event = |it| EventRow::of(key.org, step.header.repo, it);
            events.extend(step.events.iter().map(event));
        }
        let mut others = Vec::new();
        others.extend(ENTRIES.inserts(&each(entries.into_values(), |it| key.entry(it))?)?);
        others.extend(RUNS.inserts(&each(runs.into_values(), |it| key.run(it))?)?);
        others.extend(TARGETS.inserts(&each(targets, |it| key.targets(it))?)?);
        others.extend(JOURNAL.inserts(&journal)?);
        others.extend(MOVES.inserts(&moves)?);
        others.extend(OUTBOX.inserts(&outbox)?);
        others.extend(announcement_store::make_due(last.queue, &shown)?);
        others.extend(AUDIT.inserts(&audit)?);
        // Last, because on PostgreSQL other writers of the organization wait from here to the
        // commit.
        others.extend(event_log::inserts(&events)?);
        let first = QUEUE.update_of(QUEUE_KEYS, QUEUE_SET, queue)?;
        Ok(Self { queue: last.queue, version, first, others })
    }
}

/// The rows of some values.
fn each<'a, T: 'a, R>(
    values: impl IntoIterator<Item = T>,
    row: impl Fn(T) -> Result<R, DbError>,
) -> Result<Vec<R>, DbError> {
    values.into_iter().map(row).collect()
}

/// The common columns of a commit's rows.
struct Key {
    queue: QueueId,
    org: OrgId,
}

impl Key {
    fn journal(&self, step: &Commit<'_>) -> Result<JournalRow, DbError> {
        Ok(JournalRow {
            queue_id: self.queue,
            number: column(step.journal.number),
            org_id: self.org,
            at: step.journal.at,
            document: encode(step.journal)?,
        })
    }

    fn entry(&self, (entry, at): (&Arc<Entry>, Timestamp)) -> Result<EntryRow, DbError> {
        Ok(EntryRow {
            queue_id: self.queue,
            id: entry.id,
            org_id: self.org,
            pr_number: i64::from(entry.pr.0),
            state: entry.state.name().as_str(),
            live: entry.is_live(),
            run_id: entry.state.run(),
            updated_at: at,
            document: encode(entry.as_ref())?,
            submitted_at: entry.submitted_at,
            head_branch: entry.pull_request.head_branch.clone(),
        })
    }

    fn run(&self, (run, at): (&Arc<TestRun>, Timestamp)) -> Result<RunRow, DbError> {
        Ok(RunRow {
            queue_id: self.queue,
            id: run.id,
            org_id: self.org,
            running: run.status.is_running(),
            bisection: run.bisection,
            updated_at: at,
            document: encode(run.as_ref())?,
        })
    }

    fn targets(
        &self,
        (pr, (targets, at)): (PrNumber, (&Arc<ReportedTargets>, Timestamp)),
    ) -> Result<TargetsRow, DbError> {
        Ok(TargetsRow {
            queue_id: self.queue,
            pr_number: i64::from(pr.0),
            org_id: self.org,
            updated_at: at,
            document: encode(targets.as_ref())?,
        })
    }

    fn effect(&self, step: &Commit<'_>, it: &NumberedEffect) -> Result<OutboxRow, DbError> {
        Ok(OutboxRow {
            org_id: self.org,
            queue_id: self.queue,
            number: column(it.number),
            lane: it.effect.class().as_str(),
            run_id: it.effect.run(),
            due_at: step.at,
            attempts: 0,
            document: encode(&EffectDocument { effect: it.effect.clone() })?,
            request_id: step.request.map(ToOwned::to_owned),
        })
    }

    fn moves(&self, step: &Commit<'_>) -> Result<Vec<MoveRow>, DbError> {
        let mut rows = Vec::new();
        for (ordinal, decision) in (0_i64..).zip(&step.journal.decisions) {
            let Decision::Moved(moved) = decision else { continue };
            let stay = Stay::of(step.journal.at, decision);
            rows.push(MoveRow {
                queue_id: self.queue,
                number: column(step.journal.number),
                ordinal,
                org_id: self.org,
                repo_id: step.header.repo,
                entry_id: moved.entry,
                at: step.journal.at,
                document: encode(&MoveDocument { decision: decision.clone() })?,
                from_state: moved.from.map(PrState::as_str),
                to_state: moved.to.as_str(),
                restarted: stay.is_some_and(|stay| stay.restarted),
                bisection: moved.bisection,
                after_micros: moved.after_micros,
                entered_line_at: moved.entered_line_at,
            });
        }
        Ok(rows)
    }
}
