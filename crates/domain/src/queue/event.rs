//! Public events, written in the same commit as the state.

use crate::ids::{BranchName, PrNumber, RunId, Sha};
use crate::time::Timestamp;
use crate::words::words;

use super::{Exit, Mismatch, QueueStateName, TestRun};

words!(
    /// The kind of an event, with its public name.
    EventKind {
        /// A pull request was submitted.
        Submitted = "pull_request.submitted",
        /// A pull request entered the line, or returned to it.
        Queued = "pull_request.queued",
        /// A test run of a pull request started.
        Testing = "pull_request.testing",
        /// The run of a pull request failed; another pull request may be the culprit.
        PendingFailure = "pull_request.pending_failure",
        /// A pull request failed and left the queue.
        Failed = "pull_request.failed",
        /// A pull request was cancelled and left the queue.
        Canceled = "pull_request.canceled",
        /// A pull request is on the target branch.
        Merged = "pull_request.merged",
        /// A push from outside removed a merged pull request from the target branch.
        RemovedFromTarget = "pull_request.removed_from_target",
        /// The candidate of a batch was built.
        BatchSubmitted = "pull_request_batch.submitted",
        /// Pull requests of a batch returned to the line.
        BatchQueued = "pull_request_batch.queued",
        /// Every pull request of a batch is being tested.
        BatchTesting = "pull_request_batch.testing",
        /// The run of a batch failed; every pull request of it is now pending failure.
        BatchPendingFailure = "pull_request_batch.pending_failure",
        /// Pull requests of a batch failed and left the queue.
        BatchFailed = "pull_request_batch.failed",
        /// Pull requests of a batch were cancelled and left the queue.
        BatchCanceled = "pull_request_batch.canceled",
        /// Every pull request of a batch is on the target branch.
        BatchMerged = "pull_request_batch.merged",
        /// The candidate of a test run with external checks was built.
        ChecksRequested = "test_run.checks_requested",
        /// A candidate, or what was to land, is not its base with the changes; the queue is paused.
        CompositionMismatch = "test_run.composition_mismatch",
        /// What landed for a pull request is not its base with the changes, which was found
        /// afterwards; the queue is paused.
        LandingMismatch = "pull_request.landing_mismatch",
        /// The queue changed its state.
        QueueStateChanged = "queue.state_changed",
        /// The queue's settings changed.
        QueueConfigChanged = "queue.config_changed",
    }
);

/// The subject of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A pull request.
    PullRequest {
        /// Its number.
        pr: PrNumber,
        /// The author's login or name.
        author: String,
        /// The URL of its page on the host.
        url: String,
        /// How it left the queue, if it did.
        exit: Option<Box<Exit>>,
    },
    /// A batch: pull requests that are tested together.
    Batch {
        /// The pull requests that changed, in line order.
        prs: Vec<PrNumber>,
        /// Every pull request of the batch.
        together: Vec<PrNumber>,
    },
    /// A test run with external checks.
    TestRun {
        /// The pull requests that it tests, in line order.
        prs: Vec<PrNumber>,
        /// The required checks that an external CI reports.
        checks: Vec<String>,
    },
    /// A test run whose candidate, or the commit that was to land, is wrong.
    Composition {
        /// The pull requests that it tests, in line order.
        prs: Vec<PrNumber>,
        /// The difference.
        mismatch: Mismatch,
    },
    /// The queue itself.
    Queue {
        /// Who caused the change, as [`Actor`](super::Actor) displays it.
        by: String,
        /// The queue's state before.
        from: QueueStateName,
        /// The queue's state after; equal to `from` when only settings changed.
        to: QueueStateName,
    },
}

/// The test run of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EventRun {
    /// The run's id.
    pub id: RunId,
    /// The test branch.
    pub branch: BranchName,
    /// The candidate commit, once built.
    pub sha: Option<Sha>,
    /// Whether it tests several pull requests.
    pub batched: bool,
    /// Whether it belongs to a bisection.
    pub bisection: bool,
}

impl From<&TestRun> for EventRun {
    fn from(run: &TestRun) -> Self {
        Self {
            id: run.id,
            branch: run.branch.clone(),
            sha: run.candidate.as_ref().map(|candidate| candidate.sha.clone()),
            batched: run.group.len() > 1,
            bisection: run.bisection,
        }
    }
}

/// The batch of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EventBatch {
    /// The run that tests the batch.
    pub run: EventRun,
    /// Every pull request of the batch, in line order.
    pub together: Vec<PrNumber>,
}

impl EventBatch {
    /// The batch that a run tests; `None` for a single pull request and before the candidate is
    /// built.
    pub fn of(run: &TestRun) -> Option<Self> {
        let is_batch = run.group.len() > 1 && run.candidate.is_some();
        let together = || run.group.iter().map(|member| member.pr).collect();
        is_batch.then(|| Self { run: EventRun::from(run), together: together() })
    }
}

/// A public event of a queue. [`EventWriter`](crate::ports::EventWriter) turns it into the
/// published payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its number within the queue.
    pub number: u64,
    /// The kind of event.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    /// The pull request, batch or queue that changed.
    pub subject: Subject,
    /// The reason's name, upper case; for a state change of the queue, the caller's reason.
    pub reason: Option<String>,
    /// The test run; every event of a batch has one, with its candidate.
    pub run: Option<EventRun>,
}
