//! Queues: loaded whole, committed as a value.

use async_trait::async_trait;
use thiserror::Error;

use crate::audit::AuditRecord;
use crate::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId};
use crate::ports::{EventRecord, StoreError};
use crate::queue::{Changes, Header, JournalRecord, NumberedEffect, Queue, ReportedTargets};
use crate::time::Timestamp;

/// A queue and whose it is. Every access names both: a queue of another organization is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueRef {
    /// Whose.
    pub org: OrgId,
    /// Which.
    pub id: QueueId,
}

/// How often a queue has been committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub i64);

/// The answer to a load.
#[derive(Debug)]
pub enum Loaded {
    /// The caller's version is the newest.
    Current,
    /// The newest state and its version.
    Fresh(Box<Queue>, Version),
}

/// Where a queue belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueKey {
    /// The queue.
    pub queue: QueueRef,
    /// Its repository.
    pub repo: RepoId,
    /// Its target branch.
    pub branch: BranchName,
}

/// Everything that one step writes.
#[derive(Debug)]
pub struct Commit<'a> {
    /// Which queue.
    pub queue: QueueRef,
    /// The version that the step was decided on.
    pub expected: Version,
    /// The queue's row.
    pub header: &'a Header,
    /// When time alone will next change something.
    pub next_deadline: Option<Timestamp>,
    /// The entries, runs and targets that changed.
    pub changes: &'a Changes,
    /// The journal's record.
    pub journal: &'a JournalRecord,
    /// New effects for the outbox.
    pub effects: &'a [NumberedEffect],
    /// New public events.
    pub events: &'a [EventRecord],
    /// The time of the step.
    pub at: Timestamp,
    /// The record for the audit log, when the step is an administrative change.
    pub audit: Option<&'a AuditRecord>,
    /// The request that caused the step; its effects keep it.
    pub request: Option<&'a str>,
    /// Pull requests that are to be shown on the host. Empty on hosts that show nothing.
    pub shown: &'a [PrNumber],
    /// Until when [`QueueStore::versions`] counts the queue among those that are looked at often;
    /// `None` leaves it as it is.
    pub watched_until: Option<Timestamp>,
}

/// Why a commit did not happen. Nothing was written.
#[derive(Debug, Error)]
pub enum CommitError {
    /// Somebody else committed first: load and decide again.
    #[error("the queue was changed by somebody else")]
    Conflict,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a queue was not created. Nothing was written.
#[derive(Debug, Error)]
pub enum CreateError {
    /// The repository has a queue for that branch.
    #[error("there is a queue for that branch")]
    Exists,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps queues.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Writes a new, empty queue with version 0. `Exists` when a queue that is not deleted has the
    /// same repository and branch; of two at once exactly one succeeds.
    async fn create(&self, queue: &Queue) -> Result<(), CreateError>;

    /// The queue of a branch. Deleted queues are not found.
    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<QueueRef>, StoreError>;

    /// The newest state: header, live entries (with their targets) and the runs that matter to
    /// them, read at one point in time. [`Loaded::Current`] when `known` is the newest version,
    /// decided by one small read. `None` when there is no such queue, or it is deleted.
    ///
    /// A run matters while it is building or testing, or a live entry's state refers to it, or the
    /// header's landing does.
    async fn load(
        &self,
        queue: QueueRef,
        known: Option<Version>,
    ) -> Result<Option<Loaded>, StoreError>;

    /// Writes a step whole or not at all: header, changed rows, journal record, effects and
    /// events, if the version is still the expected one, which then grows by one. Writes only the
    /// rows named in the changes, so that its cost does not grow with the queue.
    async fn commit(&self, commit: &Commit<'_>) -> Result<Version, CommitError>;

    /// Queues that are not deleted, ordered by id; of one organization or repository if given.
    async fn list(
        &self,
        org: Option<OrgId>,
        repo: Option<RepoId>,
    ) -> Result<Vec<QueueKey>, StoreError>;

    /// Queues that are not deleted with their versions, ordered by id, by one read; with a time only
    /// those that are looked at often at that time, as their last commits said. A new queue is
    /// not.
    async fn versions(
        &self,
        watched_at: Option<Timestamp>,
    ) -> Result<Vec<(QueueKey, Version)>, StoreError>;

    /// Queues whose next deadline is not after `at`, the most overdue first, at most `limit`.
    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<QueueRef>, StoreError>;

    /// The targets last reported for a pull request, whether or not it has an entry.
    async fn targets(
        &self,
        queue: QueueRef,
        pr: PrNumber,
    ) -> Result<Option<ReportedTargets>, StoreError>;
}
