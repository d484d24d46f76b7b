//! Refusals of commands.

use thiserror::Error;

use crate::ids::{PrNumber, RunId, Sha};

use super::{CheckConclusion, PrState, RunStatus};

/// A refused command, with the rule that it breaks. The queue has not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Refusal {
    /// The pull request has no live entry in this queue.
    #[error("pull request {pr} is not in the merge queue")]
    NotInQueue {
        /// The pull request.
        pr: PrNumber,
    },
    /// The entry's state has no tests to restart.
    #[error("pull request {pr} is {}: only TESTING and PENDING_FAILURE have tests to restart", state.as_str())]
    NothingToRestart {
        /// The pull request.
        pr: PrNumber,
        /// Its state.
        state: PrState,
    },
    /// The pull request is landing.
    #[error("pull request {pr} is being merged right now")]
    Landing {
        /// The pull request.
        pr: PrNumber,
    },
    /// The pull request is closed or merged on its host.
    #[error("pull request {pr} is not open")]
    PullRequestNotOpen {
        /// The pull request.
        pr: PrNumber,
    },
    /// The pull request depends on itself through others in the queue.
    #[error("pull request {pr} depends on itself: {}", around(*pr, others))]
    DependencyCycle {
        /// The pull request.
        pr: PrNumber,
        /// The others: each depends on the next, and the last on the pull request.
        others: Vec<PrNumber>,
    },
    /// The queue still has entries.
    #[error("the merge queue is not empty: {live} still in it")]
    QueueNotEmpty {
        /// The number of live entries.
        live: usize,
    },
    /// The queue is already switching modes.
    #[error("the merge queue is already switching modes; wait until its line is empty")]
    ModeChangeInProgress,
    /// The queue does not know the test run.
    #[error("test run {run} is not in the merge queue")]
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// The test run has ended.
    #[error("test run {run} has ended with {}: its result is final", status.as_str())]
    RunEnded {
        /// The run.
        run: RunId,
        /// Its status.
        status: RunStatus,
    },
    /// The reported commit is not the candidate of the test run.
    #[error("test run {run} tests {}, not commit {given}", named(tested.as_ref()))]
    OtherCommit {
        /// The run.
        run: RunId,
        /// The reported commit.
        given: Sha,
        /// The candidate; `None` while it is being built.
        tested: Option<Sha>,
    },
    /// The check is not an external check of the test run.
    #[error(
        "{check:?} is not an external check of test run {run}: the checks are {}",
        listed(external)
    )]
    NotExternal {
        /// The run.
        run: RunId,
        /// The name of the check.
        check: String,
        /// The external checks of the run.
        external: Vec<String>,
    },
    /// The check already has another result.
    #[error("check {check:?} of test run {run} already completed with {}", conclusion.as_str())]
    CheckCompleted {
        /// The run.
        run: RunId,
        /// The name of the check.
        check: String,
        /// Its conclusion.
        conclusion: CheckConclusion,
    },
    /// A setting is out of bounds.
    #[error("{field} {rule}")]
    InvalidSetting {
        /// The setting, by its name in the API.
        field: String,
        /// The rule that it breaks.
        rule: String,
    },
}

fn around(pr: PrNumber, others: &[PrNumber]) -> String {
    let all = [pr].into_iter().chain(others.iter().copied()).chain([pr]);
    all.map(|pr| format!("#{pr}")).collect::<Vec<_>>().join(" → ")
}

fn named(tested: Option<&Sha>) -> String {
    tested.map_or_else(|| "no commit yet".to_owned(), |sha| format!("commit {sha}"))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
