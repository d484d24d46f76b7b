//! Rows of queues, and their conversions.

use diesel::prelude::*;
use signalbox_domain::ids::{EntryId, OrgId, QueueId, RepoId, RunId};
use signalbox_domain::ports::{Commit, QueueRef};
use signalbox_domain::queue::{Decision, Entry, Moved, Queue, TestRun};
use signalbox_domain::time::Timestamp;

use super::audit_log::AuditRow;
use super::event_log::EventRow;
use crate::documents::{EffectDocument, Json, MoveDocument, column, encode};
use crate::error::DbError;
use crate::schema::{entries, entry_moves, impacted_targets, journal, outbox, queues, runs};
use crate::sql_types::Sql;

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

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = entries, treat_none_as_null = true)]
pub(super) struct EntryRow {
    queue_id: Sql<QueueId>,
    id: Sql<EntryId>,
    org_id: Sql<OrgId>,
    pr_number: i64,
    state: String,
    live: bool,
    run_id: Option<Sql<RunId>>,
    updated_at: Sql<Timestamp>,
    document: Json,
    submitted_at: Sql<Timestamp>,
    head_branch: Option<String>,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = runs)]
pub(super) struct RunRow {
    queue_id: Sql<QueueId>,
    id: Sql<RunId>,
    org_id: Sql<OrgId>,
    running: bool,
    bisection: bool,
    updated_at: Sql<Timestamp>,
    document: Json,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = impacted_targets)]
pub(super) struct TargetsRow {
    queue_id: Sql<QueueId>,
    pr_number: i64,
    org_id: Sql<OrgId>,
    updated_at: Sql<Timestamp>,
    document: Json,
}

#[derive(Insertable)]
#[diesel(table_name = journal)]
pub(super) struct JournalRow {
    queue_id: Sql<QueueId>,
    number: i64,
    org_id: Sql<OrgId>,
    at: Sql<Timestamp>,
    document: Json,
}

#[derive(Insertable)]
#[diesel(table_name = entry_moves)]
pub(super) struct MoveRow {
    queue_id: Sql<QueueId>,
    number: i64,
    ordinal: i64,
    org_id: Sql<OrgId>,
    repo_id: Sql<RepoId>,
    entry_id: Sql<EntryId>,
    at: Sql<Timestamp>,
    document: Json,
    from_state: Option<String>,
    to_state: String,
}

#[derive(Insertable)]
#[diesel(table_name = outbox)]
pub(super) struct OutboxRow {
    org_id: Sql<OrgId>,
    queue_id: Sql<QueueId>,
    number: i64,
    lane: String,
    run_id: Option<Sql<RunId>>,
    due_at: Sql<Timestamp>,
    attempts: i32,
    document: Json,
    request_id: Option<String>,
}

/// The rows of a commit.
pub(super) struct CommitRows {
    pub(super) queue: QueueRef,
    pub(super) expected: i64,
    pub(super) at: Timestamp,
    pub(super) next_deadline: Option<Timestamp>,
    /// `None` leaves it unchanged.
    pub(super) watched_until: Option<Timestamp>,
    pub(super) deleted: bool,
    pub(super) header: Json,
    pub(super) entries: Vec<EntryRow>,
    pub(super) runs: Vec<RunRow>,
    pub(super) targets: Vec<TargetsRow>,
    pub(super) journal: JournalRow,
    pub(super) moves: Vec<MoveRow>,
    pub(super) events: Vec<EventRow>,
    pub(super) outbox: Vec<OutboxRow>,
    pub(super) audit: Option<AuditRow>,
    /// The pull requests to announce.
    pub(super) shown: Vec<i64>,
}

impl CommitRows {
    pub(super) fn of(commit: &Commit<'_>) -> Result<Self, DbError> {
        let key = Key { queue: commit.queue.id, org: commit.queue.org, at: commit.at };
        let changes = commit.changes;
        Ok(Self {
            queue: commit.queue,
            expected: commit.expected.0,
            at: commit.at,
            watched_until: commit.watched_until,
            next_deadline: commit.next_deadline,
            deleted: commit.header.deleted,
            header: encode(commit.header)?,
            entries: changes.entries.iter().map(|it| key.entry(it)).collect::<Result<_, _>>()?,
            runs: changes.runs.iter().map(|it| key.run(it)).collect::<Result<_, _>>()?,
            targets: changes
                .targets
                .iter()
                .map(|(pr, targets)| {
                    Ok(TargetsRow {
                        queue_id: Sql(key.queue),
                        pr_number: i64::from(pr.0),
                        org_id: Sql(key.org),
                        updated_at: Sql(key.at),
                        document: encode(targets.as_ref())?,
                    })
                })
                .collect::<Result<_, DbError>>()?,
            journal: JournalRow {
                queue_id: Sql(key.queue),
                number: column(commit.journal.number),
                org_id: Sql(key.org),
                at: Sql(commit.journal.at),
                document: encode(commit.journal)?,
            },
            moves: key.moves(commit)?,
            events: commit
                .events
                .iter()
                .map(|event| EventRow::of(key.org, commit.header.repo, event))
                .collect(),
            outbox: commit
                .effects
                .iter()
                .map(|it| {
                    Ok(OutboxRow {
                        org_id: Sql(key.org),
                        queue_id: Sql(key.queue),
                        number: column(it.number),
                        lane: it.effect.class().as_str().to_owned(),
                        run_id: it.effect.run().map(Sql),
                        due_at: Sql(key.at),
                        attempts: 0,
                        document: encode(&EffectDocument { effect: it.effect.clone() })?,
                        request_id: commit.request.map(ToOwned::to_owned),
                    })
                })
                .collect::<Result<_, DbError>>()?,
            audit: commit.audit.map(AuditRow::of).transpose()?,
            shown: commit.shown.iter().map(|pr| i64::from(pr.0)).collect(),
        })
    }
}

/// The common columns of a commit's rows.
struct Key {
    queue: QueueId,
    org: OrgId,
    at: Timestamp,
}

impl Key {
    fn entry(&self, entry: &Entry) -> Result<EntryRow, DbError> {
        Ok(EntryRow {
            queue_id: Sql(self.queue),
            id: Sql(entry.id),
            org_id: Sql(self.org),
            pr_number: i64::from(entry.pr.0),
            state: entry.state.name().as_str().to_owned(),
            live: entry.is_live(),
            run_id: entry.state.run().map(Sql),
            updated_at: Sql(self.at),
            document: encode(entry)?,
            submitted_at: Sql(entry.submitted_at),
            head_branch: entry.pull_request.head_branch.clone(),
        })
    }

    fn run(&self, run: &TestRun) -> Result<RunRow, DbError> {
        Ok(RunRow {
            queue_id: Sql(self.queue),
            id: Sql(run.id),
            org_id: Sql(self.org),
            running: run.status.is_running(),
            bisection: run.bisection,
            updated_at: Sql(self.at),
            document: encode(run)?,
        })
    }

    fn moves(&self, commit: &Commit<'_>) -> Result<Vec<MoveRow>, DbError> {
        let mut rows = Vec::new();
        for (ordinal, decision) in (0_i64..).zip(&commit.journal.decisions) {
            let Decision::Moved(Moved { entry, from, to, .. }) = decision else { continue };
            rows.push(MoveRow {
                queue_id: Sql(self.queue),
                number: column(commit.journal.number),
                ordinal,
                org_id: Sql(self.org),
                repo_id: Sql(commit.header.repo),
                entry_id: Sql(*entry),
                at: Sql(commit.journal.at),
                document: encode(&MoveDocument { decision: decision.clone() })?,
                from_state: from.map(|state| state.as_str().to_owned()),
                to_state: to.as_str().to_owned(),
            });
        }
        Ok(rows)
    }
}
