//! Reads for API replies and pages. No decision depends on them.

use async_trait::async_trait;

use crate::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName, RunId};
use crate::ports::{QueueRef, StoreError};
use crate::queue::{Decision, Entry, JournalRecord, PrState, Stay, TestRun};
use crate::time::Timestamp;

/// The scope of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsScope {
    /// The organization.
    pub org: OrgId,
    /// One repository; `None` for all repositories of the organization.
    pub repo: Option<RepoId>,
}

/// The number of entries of a queue in each state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    /// The queue.
    pub queue: QueueRef,
    /// Its repository.
    pub repo: RepoName,
    /// Its target branch.
    pub branch: BranchName,
    /// Live entries by state and by whether their run belongs to a bisection.
    pub counts: Vec<(PrState, bool, u64)>,
}

/// A change of state, from the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRecord {
    /// The time of the change.
    pub at: Timestamp,
    /// Always [`Decision::Moved`].
    pub decision: Decision,
}

/// Reads committed rows.
#[async_trait]
pub trait ReadStore: Send + Sync {
    /// A pull request's entry, live or ended, with its targets.
    async fn entry(&self, queue: QueueRef, pr: PrNumber) -> Result<Option<Entry>, StoreError>;

    /// A test run, active or ended.
    async fn run(&self, queue: QueueRef, run: RunId) -> Result<Option<TestRun>, StoreError>;

    /// Journal records with numbers above `after`, in order, at most `limit`.
    async fn journal(
        &self,
        queue: QueueRef,
        after: u64,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, StoreError>;

    /// A queue's changes of state at or after `since`, oldest first.
    async fn moves_since(
        &self,
        queue: QueueRef,
        since: Timestamp,
    ) -> Result<Vec<MoveRecord>, StoreError>;

    /// Stays in a state that ended at or after `since`, in no order.
    async fn stays_since(
        &self,
        scope: MetricsScope,
        since: Timestamp,
    ) -> Result<Vec<(QueueRef, Stay)>, StoreError>;

    /// The depth of every queue in scope that is not deleted, ordered by repository and branch,
    /// with a constant number of statements.
    async fn depths(&self, scope: MetricsScope) -> Result<Vec<QueueDepth>, StoreError>;
}
