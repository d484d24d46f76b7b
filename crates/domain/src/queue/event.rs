//! Public events: what is told to the outside, written in the same commit as the state.

use crate::ids::{PrNumber, RunId, Sha};
use crate::time::Timestamp;

use crate::words::words;

words!(
    /// What happened, as the end of the event's public name: `pull_request.<word>`.
    EventKind {
        /// A pull request was submitted.
        Submitted = "submitted",
        /// It waits in the line.
        Queued = "queued",
        /// It is being tested.
        Testing = "testing",
        /// Its run failed; the fault may lie elsewhere.
        PendingFailure = "pending_failure",
        /// It was taken out because of a failure.
        Failed = "failed",
        /// It was taken out on request.
        Canceled = "canceled",
        /// It is on the target branch.
        Merged = "merged",
        /// The queue changed its state.
        QueueStateChanged = "queue_state_changed",
        /// The queue's settings changed.
        QueueConfigChanged = "queue_config_changed",
    }
);

/// A public event of a queue. The payload that leaves the house is made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Event {
    /// Its number within the queue.
    pub number: u64,
    /// What happened.
    pub kind: EventKind,
    /// When.
    pub at: Timestamp,
    /// The pull request, unless it is about the queue.
    pub pr: Option<PrNumber>,
    /// The pull request's author.
    pub author: Option<String>,
    /// The pull request's page.
    pub url: Option<String>,
    /// The reason's word, upper case.
    pub reason: Option<String>,
    /// The run that it is about.
    pub run: Option<RunId>,
    /// That run's branch.
    pub test_branch: Option<String>,
    /// That run's candidate.
    pub test_branch_sha: Option<Sha>,
    /// Whether that run tests several pull requests.
    pub batched: bool,
    /// Whether that run belongs to a bisection.
    pub is_bisection: bool,
}
