//! Lists and histories: what was in a queue, when, and how it went. Like all reads they never feed
//! a decision. Every method is about one queue of one organization; a queue of another one is
//! empty.

use async_trait::async_trait;

use crate::ids::{EntryId, PrNumber, RunId};
use crate::ports::{QueueRef, StoreError};
use crate::queue::{Entry, Move, PrState, TestRun};
use crate::time::{Timestamp, Window};

/// Which entries are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only those in this state now.
    pub state: Option<PrState>,
    /// Only those that left the queue at least once within that time; what they are now does not
    /// matter.
    pub concluded: Option<Window>,
}

/// Where an entry stands in a list by submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubmissionPlace {
    /// When it was submitted, last.
    pub submitted_at: Timestamp,
    /// Its pull request, which tells apart those that were submitted at the same time.
    pub pr: PrNumber,
}

impl SubmissionPlace {
    /// The place of an entry.
    pub const fn of(entry: &Entry) -> Self {
        Self { submitted_at: entry.submitted_at, pr: entry.pr }
    }
}

/// A part of the tests that ended within a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestEnds {
    /// Moves out of TESTING, newest first.
    pub moves: Vec<Move>,
    /// How many there are in all.
    pub total: u64,
}

/// Reads lists and histories.
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// Entries, live and ended, by [`SubmissionPlace`] from the highest down, at most `limit`,
    /// only those below `before` if given: each page costs the same, and an entry that is
    /// submitted meanwhile moves no other one to another page. Without their targets.
    async fn entries_by_submission(
        &self,
        queue: QueueRef,
        filter: &EntryFilter,
        before: Option<SubmissionPlace>,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The entries of these pull requests, live and ended, with their targets, ordered by number;
    /// those that were never submitted are missing. A number that is given twice is found once.
    async fn entries(&self, queue: QueueRef, prs: &[PrNumber]) -> Result<Vec<Entry>, StoreError>;

    /// The entries, live and ended, of pull requests that came from that branch when they were
    /// last seen, by [`SubmissionPlace`] from the highest down, at most `limit`. Without their
    /// targets.
    async fn entries_of_branch(
        &self,
        queue: QueueRef,
        head_branch: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError>;

    /// These test runs, running and ended, ordered by number; unknown ones are missing.
    async fn runs(&self, queue: QueueRef, runs: &[RunId]) -> Result<Vec<TestRun>, StoreError>;

    /// Moves out of TESTING within that time, newest first, without the first `offset`, at most
    /// `limit`, and how many there are; both at one point in time.
    async fn test_ends(
        &self,
        queue: QueueRef,
        within: Window,
        offset: u32,
        limit: u32,
    ) -> Result<TestEnds, StoreError>;

    /// All moves of these entries in journal records from that number on, oldest first.
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
