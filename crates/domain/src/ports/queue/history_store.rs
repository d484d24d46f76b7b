//! Lists and histories of queues, for display only: no decision depends on these reads. Every
//! method reads one queue of one organization; a queue of another organization appears empty.

use async_trait::async_trait;

use crate::ids::{EntryId, PrNumber, RunId};
use crate::ports::{QueueRef, StoreError};
use crate::queue::{Entry, Move, PrState, TestRun};
use crate::time::{Timestamp, Window};

/// A filter for entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only entries that are in this state now.
    pub state: Option<PrState>,
    /// Only entries that left the queue at least once in this window, whatever their present state.
    pub concluded: Option<Window>,
}

/// A position in the list of entries by submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubmissionPlace {
    /// The time of the last submission.
    pub submitted_at: Timestamp,
    /// The pull request; breaks ties of simultaneous submissions.
    pub pr: PrNumber,
}

impl SubmissionPlace {
    /// The position of an entry.
    pub const fn of(entry: &Entry) -> Self {
        Self { submitted_at: entry.submitted_at, pr: entry.pr }
    }
}

/// A page of the tests that ended in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestEnds {
    /// Moves out of TESTING, newest first.
    pub moves: Vec<Move>,
    /// The total number of moves in the window.
    pub total: u64,
}

/// Reads lists and histories.
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// Live and ended entries by [`SubmissionPlace`], newest submission first, at most `limit`,
    /// only those below `before` if given. The cost of a page is constant, and a concurrent
    /// submission moves no other entry to another page. Targets are not loaded.
    async fn entries_by_submission(
        &self,
        queue: QueueRef,
        filter: &EntryFilter,
        before: Option<SubmissionPlace>,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The live and ended entries of these pull requests, with their targets, ordered by number.
    /// Pull requests that were never submitted are omitted; repeated numbers are returned once.
    async fn entries(&self, queue: QueueRef, prs: &[PrNumber]) -> Result<Vec<Entry>, StoreError>;

    /// The live and ended entries of pull requests from this head branch, newest submission first,
    /// at most `limit`. Targets are not loaded.
    async fn entries_of_branch(
        &self,
        queue: QueueRef,
        head_branch: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError>;

    /// These test runs, active and ended, ordered by number; unknown ones are omitted.
    async fn runs(&self, queue: QueueRef, runs: &[RunId]) -> Result<Vec<TestRun>, StoreError>;

    /// Moves out of TESTING in a window, newest first, skipping `offset`, at most `limit`, and the
    /// total number; both read in one snapshot.
    async fn test_ends(
        &self,
        queue: QueueRef,
        within: Window,
        offset: u32,
        limit: u32,
    ) -> Result<TestEnds, StoreError>;

    /// All moves of these entries in journal records with this number or a higher one, oldest
    /// first.
    async fn moves_from(
        &self,
        queue: QueueRef,
        entries: &[EntryId],
        number: u64,
    ) -> Result<Vec<Move>, StoreError>;

    /// The moves of one entry, newest first, at most `limit`.
    async fn moves_of(
        &self,
        queue: QueueRef,
        entry: EntryId,
        limit: u32,
    ) -> Result<Vec<Move>, StoreError>;

    /// Moves from TESTING to TESTS_PASSED, newest first, at most `limit`.
    async fn passes(&self, queue: QueueRef, limit: u32) -> Result<Vec<Move>, StoreError>;
}
