//! Public events: what is told to the outside, written in the same commit as the state.

use crate::ids::{BranchName, PrNumber, RunId, Sha};
use crate::time::Timestamp;
use crate::words::words;

use super::{QueueStateName, TestRun};

words!(
    /// What happened, as the event's public name.
    EventKind {
        /// A pull request was submitted.
        Submitted = "pull_request.submitted",
        /// It waits in the line.
        Queued = "pull_request.queued",
        /// It is being tested.
        Testing = "pull_request.testing",
        /// Its run failed; the fault may lie elsewhere.
        PendingFailure = "pull_request.pending_failure",
        /// It was taken out because of a failure.
        Failed = "pull_request.failed",
        /// It was taken out on request.
        Canceled = "pull_request.canceled",
        /// It is on the target branch.
        Merged = "pull_request.merged",
        /// It was merged, and the target branch was moved to where it is not.
        RemovedFromTarget = "pull_request.removed_from_target",
        /// The candidate of several pull requests is made and will be tested as one.
        BatchSubmitted = "pull_request_batch.submitted",
        /// Pull requests of a batch wait in the line again.
        BatchQueued = "pull_request_batch.queued",
        /// All of a batch is being tested.
        BatchTesting = "pull_request_batch.testing",
        /// The run of a batch failed; the last of it is held now.
        BatchPendingFailure = "pull_request_batch.pending_failure",
        /// Pull requests of a batch were taken out because of a failure.
        BatchFailed = "pull_request_batch.failed",
        /// Pull requests of a batch were taken out on request.
        BatchCanceled = "pull_request_batch.canceled",
        /// The last of a batch is on the target branch.
        BatchMerged = "pull_request_batch.merged",
        /// The queue changed its state.
        QueueStateChanged = "queue.state_changed",
        /// The queue's settings changed.
        QueueConfigChanged = "queue.config_changed",
    }
);

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A pull request.
    PullRequest {
        /// Which.
        pr: PrNumber,
        /// Its author.
        author: String,
        /// Its page.
        url: String,
    },
    /// Pull requests that are tested as one.
    Batch {
        /// Those that the event is about, in line order.
        prs: Vec<PrNumber>,
        /// All that are tested together.
        together: Vec<PrNumber>,
    },
    /// The queue itself.
    Queue {
        /// Who caused it.
        by: String,
        /// Its state before.
        from: QueueStateName,
        /// Its state after; the same when only settings changed.
        to: QueueStateName,
    },
}

/// The run that an event tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EventRun {
    /// Which.
    pub id: RunId,
    /// Its branch.
    pub branch: BranchName,
    /// Its candidate, once built.
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

/// A batch that events tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EventBatch {
    /// Its run.
    pub run: EventRun,
    /// All that are tested together, in line order.
    pub together: Vec<PrNumber>,
}

impl EventBatch {
    /// The batch that a run tests; `None` for one pull request alone, and before there is a
    /// candidate.
    pub fn of(run: &TestRun) -> Option<Self> {
        let is_batch = run.group.len() > 1 && run.candidate.is_some();
        let together = || run.group.iter().map(|member| member.pr).collect();
        is_batch.then(|| Self { run: EventRun::from(run), together: together() })
    }
}

/// A public event of a queue. The payload that leaves the house is made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its number within the queue.
    pub number: u64,
    /// What happened.
    pub kind: EventKind,
    /// When.
    pub at: Timestamp,
    /// To whom.
    pub subject: Subject,
    /// The reason's word, upper case; of a queue's state what somebody wrote.
    pub reason: Option<String>,
    /// The run that it tells of; every event of a batch has one, with its candidate.
    pub run: Option<EventRun>,
}
