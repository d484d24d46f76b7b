//! The tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use signalbox_domain::audit::AuditRecord;
use signalbox_domain::flaky::UploadId;
use signalbox_domain::ids::{
    EntryId, HostId, OrgId, OrgSlug, PrNumber, QueueId, RepoId, RepoName, RunId, TokenId,
};
use signalbox_domain::ports::{
    AuditPlace, CheckOutput, EventRecord, Org, PublicEvent, QueueKey, QueueRef, Repository,
    StoredPullRequest, Version,
};
use signalbox_domain::queue::{
    Effect, Entry, Header, JournalRecord, Landing, ReportedTargets, TestRun,
};
use signalbox_domain::session::{Session, SessionHash};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::Token;
use signalbox_domain::upload::{ContentHash, UploadRecord};
use uuid::Uuid;

use super::announcement_store::AnnouncementRow;
use super::flaky_tables::FlakyTables;
use super::idempotency_store::KeyRow;
use super::job_store::JobRow;
use super::webhook_store::WebhookTables;

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) queues: BTreeMap<QueueId, QueueRow>,
    pub(super) outbox: BTreeMap<i64, OutboxRow>,
    /// The last number given to a row of the outbox.
    pub(super) last_outbox_row: i64,
    /// The last number given to a lease.
    pub(super) last_lease: u128,
    /// Public events by position, which grows over all organizations.
    pub(super) events: BTreeMap<i64, PublicEvent>,
    /// The last position given to an event.
    pub(super) last_event: i64,
    pub(super) orgs: BTreeMap<OrgSlug, Org>,
    pub(super) tokens: BTreeMap<TokenId, Token>,
    pub(super) last_revocation: Uuid,
    pub(super) sessions: BTreeMap<SessionHash, Session>,
    pub(super) keys: BTreeMap<(TokenId, String), KeyRow>,
    pub(super) repos: BTreeMap<(OrgId, RepoId), Repository>,
    pub(super) pull_requests: BTreeMap<(OrgId, RepoId, PrNumber), StoredPullRequest>,
    pub(super) flaky: FlakyTables,
    pub(super) check_outputs: BTreeMap<(OrgId, RunId, String), CheckOutput>,
    pub(super) inbound_deliveries: BTreeMap<(OrgId, HostId, String), Timestamp>,
    pub(super) announcements: BTreeMap<(QueueRef, PrNumber), AnnouncementRow>,
    pub(super) jobs: BTreeMap<String, JobRow>,
    pub(super) uploads: BTreeMap<UploadId, UploadRow>,
    pub(super) upload_jobs: BTreeMap<i64, UploadJob>,
    /// The last number given to a job of reading an upload.
    pub(super) last_upload_job: i64,
    pub(super) public_ids: BTreeMap<Uuid, (OrgId, RepoId)>,
    pub(super) webhooks: WebhookTables,
    pub(super) audit: BTreeMap<AuditPlace, AuditRecord>,
}

/// A queue with its entries, runs and journal.
#[derive(Debug)]
pub(super) struct QueueRow {
    pub(super) header: Header,
    pub(super) version: Version,
    pub(super) next_deadline: Option<Timestamp>,
    pub(super) watched_until: Option<Timestamp>,
    /// Live and ended entries, without their targets.
    pub(super) entries: BTreeMap<EntryId, Entry>,
    /// All runs, active and ended.
    pub(super) runs: BTreeMap<RunId, TestRun>,
    pub(super) targets: BTreeMap<PrNumber, Arc<ReportedTargets>>,
    pub(super) journal: BTreeMap<u64, JournalRecord>,
}

/// An effect in the outbox.
#[derive(Debug)]
pub(super) struct OutboxRow {
    pub(super) queue: QueueRef,
    pub(super) number: u64,
    pub(super) effect: Effect,
    pub(super) due_at: Timestamp,
    pub(super) attempts: u32,
    pub(super) failing_since: Option<Timestamp>,
    pub(super) last_error: Option<String>,
    pub(super) lease: Option<Lease>,
    pub(super) request: Option<String>,
}

/// An upload.
#[derive(Debug)]
pub(super) struct UploadRow {
    pub(super) record: UploadRecord,
    pub(super) secret: Option<ContentHash>,
    pub(super) digest: Option<ContentHash>,
}

/// An upload to process.
#[derive(Debug)]
pub(super) struct UploadJob {
    pub(super) upload: UploadId,
    pub(super) due_at: Timestamp,
    pub(super) attempts: u32,
    pub(super) failing_since: Option<Timestamp>,
    pub(super) last_error: Option<String>,
    pub(super) lease: Option<Lease>,
}

/// The lease of an effect or an upload.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) id: Uuid,
    pub(super) holder: Uuid,
    pub(super) until: Timestamp,
}

impl Tables {
    /// The row of a queue, including a deleted one, if it belongs to the organization.
    pub(super) fn queue(&self, queue: QueueRef) -> Option<&QueueRow> {
        self.queues.get(&queue.id).filter(|row| row.header.org == queue.org)
    }

    /// The upload with this id, if it belongs to the organization.
    pub(super) fn upload(&self, org: OrgId, id: UploadId) -> Option<&UploadRow> {
        self.uploads.get(&id).filter(|row| row.record.org == org)
    }

    /// Appends events to the log.
    pub(super) fn log(&mut self, org: OrgId, repo: RepoId, events: &[EventRecord]) {
        for told in events {
            self.last_event += 1;
            let event = PublicEvent {
                position: self.last_event,
                id: told.id,
                org,
                repo: Some(repo),
                kind: told.kind.to_owned(),
                at: told.at,
                payload: told.payload.clone(),
                request: told.request.clone(),
            };
            self.events.insert(event.position, event);
        }
    }

    /// The name of the repository that a queue belongs to.
    pub(super) fn repo_name(&self, header: &Header) -> Option<&RepoName> {
        self.repos.get(&(header.org, header.repo)).map(|repo| &repo.name)
    }
}

impl QueueRow {
    /// The queue's id and organization.
    pub(super) const fn reference(&self) -> QueueRef {
        QueueRef { org: self.header.org, id: self.header.id }
    }

    pub(super) fn key(&self) -> QueueKey {
        let Header { repo, branch, .. } = &self.header;
        QueueKey { queue: self.reference(), repo: *repo, branch: branch.clone() }
    }

    /// An entry with its targets.
    pub(super) fn with_targets(&self, entry: &Entry) -> Entry {
        Entry { targets: self.targets.get(&entry.pr).cloned(), ..entry.clone() }
    }

    /// Live entries, without their targets.
    pub(super) fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|entry| entry.is_live())
    }

    /// Whether a run matters: it is active, or a live entry or the landing refers to it.
    pub(super) fn matters(&self, run: &TestRun) -> bool {
        let lands = |landing: &Landing| landing.run == run.id || landing.runs.contains(&run.id);
        run.status.is_running()
            || self.live().any(|entry| entry.state.run() == Some(run.id))
            || self.header.landing.as_ref().is_some_and(lands)
    }
}
