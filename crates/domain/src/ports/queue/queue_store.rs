//! Queues: loaded as a whole, committed step by step.

use std::collections::BTreeMap;

use async_trait::async_trait;
use thiserror::Error;

use crate::audit::AuditRecord;
use crate::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, RepoName};
use crate::ports::{EventRecord, Repository, StoreError};
use crate::queue::{Changes, Header, JournalRecord, NumberedEffect, Queue, ReportedTargets};
use crate::time::Timestamp;

/// A queue and its organization. Every access names both, so that a queue of another organization
/// is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueRef {
    /// The organization.
    pub org: OrgId,
    /// The queue's id.
    pub id: QueueId,
}

/// The number of committed steps of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub i64);

/// The result of a load.
#[derive(Debug)]
pub enum Loaded {
    /// The caller's version is the latest.
    Current,
    /// The latest state and its version.
    Fresh(Box<Queue>, Version),
}

/// A queue with its repository and branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueKey {
    /// The queue.
    pub queue: QueueRef,
    /// Its repository.
    pub repo: RepoId,
    /// Its target branch.
    pub branch: BranchName,
}

/// Everything that a step writes.
#[derive(Debug)]
pub struct Commit<'a> {
    /// The queue.
    pub queue: QueueRef,
    /// The version that the step was computed from.
    pub expected: Version,
    /// The queue's row.
    pub header: &'a Header,
    /// When the queue next changes through the passage of time.
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
    /// The audit record, if the step is an administrative change.
    pub audit: Option<&'a AuditRecord>,
    /// The id of the request that caused the step; stored with its effects.
    pub request: Option<&'a str>,
    /// The pull requests to announce on the host; empty on hosts without a forge.
    pub shown: &'a [PrNumber],
    /// Until when the queue counts as watched in [`QueueStore::versions`]; `None` leaves it
    /// unchanged.
    pub watched_until: Option<Timestamp>,
}

/// A repository, with the queue of one of its branches and the queue's latest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The repository.
    pub repository: Repository,
    /// `None` if the branch has no queue.
    pub queue: Option<(QueueRef, Version)>,
    /// The targets last reported to that queue for the pull request of the call, read together with the
    /// version.
    pub targets: Option<ReportedTargets>,
}

/// Why a commit failed. Nothing was written.
#[derive(Debug, Error)]
pub enum CommitError {
    /// Another commit came first: load the queue and decide again.
    #[error("the queue was changed concurrently")]
    Conflict,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a queue was not created. Nothing was written.
#[derive(Debug, Error)]
pub enum CreateError {
    /// The repository already has a queue for the branch.
    #[error("the branch already has a merge queue")]
    Exists,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Stores queues.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Writes a new, empty queue with version 0. `Exists` if the branch already has a queue that is
    /// not deleted; of concurrent calls exactly one succeeds.
    async fn create(&self, queue: &Queue) -> Result<(), CreateError>;

    /// The queue of a branch. Deleted queues are not found.
    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<QueueRef>, StoreError>;

    /// The organization's repository of this name, as
    /// [`RepoStore::find_by_name`](crate::ports::RepoStore::find_by_name) finds it, with the queue
    /// of a branch, as [`find`](Self::find) does, and the targets of a pull request, if one is named, as
    /// [`targets`](Self::targets) has them; in one read.
    async fn locate(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
        branch: &BranchName,
        pr: Option<PrNumber>,
    ) -> Result<Option<Located>, StoreError>;

    /// The latest state: header, live entries with their targets, and the runs that matter to them,
    /// read in one snapshot. [`Loaded::Current`] if `known` is the latest version, which takes one
    /// small read. `None` if the queue does not exist or is deleted.
    ///
    /// A run matters while it is building or testing, or while a live entry's state or the header's
    /// landing refers to it.
    async fn load(
        &self,
        queue: QueueRef,
        known: Option<Version>,
    ) -> Result<Option<Loaded>, StoreError>;

    /// As [`load`](Self::load), with the targets last reported for some pull requests, as
    /// [`targets`](Self::targets) has them. They are read with the state or after it, so that a
    /// commit of this version fails if they have been replaced.
    async fn load_with_targets(
        &self,
        queue: QueueRef,
        known: Option<Version>,
        prs: &[PrNumber],
    ) -> Result<Option<(Loaded, BTreeMap<PrNumber, ReportedTargets>)>, StoreError> {
        let Some(loaded) = self.load(queue, known).await? else { return Ok(None) };
        let mut reported = BTreeMap::new();
        for pr in prs {
            reported.extend(self.targets(queue, *pr).await?.map(|targets| (*pr, targets)));
        }
        Ok(Some((loaded, reported)))
    }

    /// Writes consecutive steps of a queue atomically (header, changed rows, journal records, effects and
    /// events) if the version is the one that the first step was computed from. Every other step is
    /// computed from the state after the step before it, with the next version. Returns the version after
    /// the last step. Only the changed rows are written, so that the cost does not grow with the queue.
    ///
    /// At least one step is written; all are of one queue.
    async fn commit(&self, steps: &[Commit<'_>]) -> Result<Version, CommitError>;

    /// Queues that are not deleted, ordered by id; of one organization or repository if given.
    async fn list(
        &self,
        org: Option<OrgId>,
        repo: Option<RepoId>,
    ) -> Result<Vec<QueueKey>, StoreError>;

    /// Queues that are not deleted, with their versions, ordered by id, in one read. With a time,
    /// only the queues that are watched at that time, by [`Commit::watched_until`].
    async fn versions(
        &self,
        watched_at: Option<Timestamp>,
    ) -> Result<Vec<(QueueKey, Version)>, StoreError>;

    /// Queues whose next deadline is at `at` or earlier, most overdue first, at most `limit`.
    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<QueueRef>, StoreError>;

    /// The targets last reported for a pull request, whether or not it has an entry.
    async fn targets(
        &self,
        queue: QueueRef,
        pr: PrNumber,
    ) -> Result<Option<ReportedTargets>, StoreError>;
}
