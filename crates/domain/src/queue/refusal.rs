//! Refusals of commands.

use thiserror::Error;

use crate::ids::PrNumber;

use super::PrState;

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
    /// The queue still has entries.
    #[error("the merge queue is not empty: {live} still in it")]
    QueueNotEmpty {
        /// The number of live entries.
        live: usize,
    },
    /// The queue is already switching modes.
    #[error("the merge queue is already switching modes; wait until its line is empty")]
    ModeChangeInProgress,
    /// A setting is out of bounds.
    #[error("{field} {rule}")]
    InvalidSetting {
        /// The setting, by its name in the API.
        field: String,
        /// The rule that it breaks.
        rule: String,
    },
}
