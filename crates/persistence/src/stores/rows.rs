//! Rows as they are written and read.

use diesel::prelude::*;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{Commit, QueueRef};
use signalbox_domain::queue::{Decision, Entry, Moved, Queue, TestRun};
use signalbox_domain::time::Timestamp;

use super::audit_log::AuditRow;
use super::event_log::EventRow;
use crate::documents::{FORMAT, column, encode};
use crate::error::DbError;
use crate::schema::{entries, entry_moves, impacted_targets, journal, outbox, queues, runs};

#[derive(Insertable)]
#[diesel(table_name = queues)]
pub(super) struct QueueRow {
    id: String,
    org_id: String,
    repo_id: String,
    branch: String,
    version: i64,
    next_deadline: Option<i64>,
    deleted: bool,
    format: i32,
    document: String,
}

impl QueueRow {
    pub(super) fn of(queue: &Queue) -> Result<Self, DbError> {
        let header = &queue.header;
        Ok(Self {
            id: header.id.to_string(),
            org_id: header.org.to_string(),
            repo_id: header.repo.to_string(),
            branch: header.branch.to_string(),
            version: 0,
            next_deadline: None,
            deleted: header.deleted,
            format: FORMAT,
            document: encode("queue", header)?,
        })
    }
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = entries, treat_none_as_null = true)]
pub(super) struct EntryRow {
    queue_id: String,
    id: String,
    org_id: String,
    pr_number: i64,
    state: String,
    live: bool,
    run_id: Option<String>,
    updated_at: i64,
    format: i32,
    document: String,
    submitted_at: i64,
    head_branch: Option<String>,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = runs)]
pub(super) struct RunRow {
    queue_id: String,
    id: String,
    org_id: String,
    running: bool,
    bisection: bool,
    updated_at: i64,
    format: i32,
    document: String,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = impacted_targets)]
pub(super) struct TargetsRow {
    queue_id: String,
    pr_number: i64,
    org_id: String,
    updated_at: i64,
    format: i32,
    document: String,
}

#[derive(Insertable)]
#[diesel(table_name = journal)]
pub(super) struct JournalRow {
    queue_id: String,
    number: i64,
    org_id: String,
    at: i64,
    format: i32,
    document: String,
}

#[derive(Insertable)]
#[diesel(table_name = entry_moves)]
pub(super) struct MoveRow {
    queue_id: String,
    number: i64,
    ordinal: i64,
    org_id: String,
    repo_id: String,
    entry_id: String,
    at: i64,
    format: i32,
    document: String,
    from_state: Option<String>,
    to_state: String,
}

#[derive(Insertable)]
#[diesel(table_name = outbox)]
pub(super) struct OutboxRow {
    org_id: String,
    queue_id: String,
    number: i64,
    lane: String,
    run_id: Option<String>,
    due_at: i64,
    attempts: i32,
    format: i32,
    document: String,
    request_id: Option<String>,
}

/// Everything that a commit writes, ready to be written.
pub(super) struct CommitRows {
    pub(super) queue: QueueRef,
    pub(super) expected: i64,
    pub(super) at: Timestamp,
    pub(super) next_deadline: Option<i64>,
    /// `None` leaves it as it is.
    pub(super) watched_until: Option<i64>,
    pub(super) deleted: bool,
    pub(super) header: String,
    pub(super) entries: Vec<EntryRow>,
    pub(super) runs: Vec<RunRow>,
    pub(super) targets: Vec<TargetsRow>,
    pub(super) journal: JournalRow,
    pub(super) moves: Vec<MoveRow>,
    pub(super) events: Vec<EventRow>,
    pub(super) outbox: Vec<OutboxRow>,
    pub(super) audit: Option<AuditRow>,
    /// Numbers of pull requests that are to be shown.
    pub(super) shown: Vec<i64>,
}

impl CommitRows {
    pub(super) fn of(commit: &Commit<'_>) -> Result<Self, DbError> {
        let key = Key {
            queue: commit.queue.id.to_string(),
            org: commit.queue.org,
            at: commit.at.unix_micros(),
        };
        let changes = commit.changes;
        Ok(Self {
            queue: commit.queue,
            expected: commit.expected.0,
            at: commit.at,
            watched_until: commit.watched_until.map(Timestamp::unix_micros),
            next_deadline: commit.next_deadline.map(Timestamp::unix_micros),
            deleted: commit.header.deleted,
            header: encode("queue", commit.header)?,
            entries: changes.entries.iter().map(|it| key.entry(it)).collect::<Result<_, _>>()?,
            runs: changes.runs.iter().map(|it| key.run(it)).collect::<Result<_, _>>()?,
            targets: changes
                .targets
                .iter()
                .map(|(pr, targets)| {
                    Ok(TargetsRow {
                        queue_id: key.queue.clone(),
                        pr_number: i64::from(pr.0),
                        org_id: key.org.to_string(),
                        updated_at: key.at,
                        format: FORMAT,
                        document: encode("targets", targets.as_ref())?,
                    })
                })
                .collect::<Result<_, DbError>>()?,
            journal: JournalRow {
                queue_id: key.queue.clone(),
                number: column(commit.journal.number),
                org_id: key.org.to_string(),
                at: commit.journal.at.unix_micros(),
                format: FORMAT,
                document: encode("journal record", commit.journal)?,
            },
            moves: key.moves(commit)?,
            events: commit
                .events
                .iter()
                .map(|told| EventRow::of(key.org, commit.header.repo, told))
                .collect(),
            outbox: commit
                .effects
                .iter()
                .map(|it| {
                    Ok(OutboxRow {
                        org_id: key.org.to_string(),
                        queue_id: key.queue.clone(),
                        number: column(it.number),
                        lane: it.effect.lane().word().to_owned(),
                        run_id: it.effect.run().map(|run| run.to_string()),
                        due_at: key.at,
                        attempts: 0,
                        format: FORMAT,
                        document: encode("effect", &it.effect)?,
                        request_id: commit.request.map(ToOwned::to_owned),
                    })
                })
                .collect::<Result<_, DbError>>()?,
            audit: commit.audit.map(AuditRow::of).transpose()?,
            shown: commit.shown.iter().map(|pr| i64::from(pr.0)).collect(),
        })
    }
}

/// What all rows of a commit have in common.
struct Key {
    queue: String,
    org: OrgId,
    at: i64,
}

impl Key {
    fn entry(&self, entry: &Entry) -> Result<EntryRow, DbError> {
        Ok(EntryRow {
            queue_id: self.queue.clone(),
            id: entry.id.to_string(),
            org_id: self.org.to_string(),
            pr_number: i64::from(entry.pr.0),
            state: entry.state.name().word().to_owned(),
            live: entry.is_live(),
            run_id: entry.state.run().map(|run| run.to_string()),
            updated_at: self.at,
            format: FORMAT,
            document: encode("entry", entry)?,
            submitted_at: entry.submitted_at.unix_micros(),
            head_branch: entry.pull_request.head_branch.clone(),
        })
    }

    fn run(&self, run: &TestRun) -> Result<RunRow, DbError> {
        Ok(RunRow {
            queue_id: self.queue.clone(),
            id: run.id.to_string(),
            org_id: self.org.to_string(),
            running: run.status.is_running(),
            bisection: run.bisection,
            updated_at: self.at,
            format: FORMAT,
            document: encode("test run", run)?,
        })
    }

    fn moves(&self, commit: &Commit<'_>) -> Result<Vec<MoveRow>, DbError> {
        let mut rows = Vec::new();
        for (ordinal, decision) in (0_i64..).zip(&commit.journal.decisions) {
            let Decision::Moved(Moved { entry, from, to, .. }) = decision else { continue };
            rows.push(MoveRow {
                queue_id: self.queue.clone(),
                number: column(commit.journal.number),
                ordinal,
                org_id: self.org.to_string(),
                repo_id: commit.header.repo.to_string(),
                entry_id: entry.to_string(),
                at: commit.journal.at.unix_micros(),
                format: FORMAT,
                document: encode("move", decision)?,
                from_state: from.map(|state| state.word().to_owned()),
                to_state: to.word().to_owned(),
            });
        }
        Ok(rows)
    }
}
