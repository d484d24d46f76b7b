//! Why a command was not carried out.

use thiserror::Error;

use crate::ids::PrNumber;

use super::PrState;

/// A command that is refused, with the rule that it breaks. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Refusal {
    /// The pull request has no live entry here.
    #[error("pull request {pr} is not in the merge queue")]
    NotInQueue {
        /// The pull request.
        pr: PrNumber,
    },
    /// There are no tests to restart in this state.
    #[error("pull request {pr} is {}: only TESTING and PENDING_FAILURE have tests to restart", state.as_str())]
    NothingToRestart {
        /// The pull request.
        pr: PrNumber,
        /// The state that it is in.
        state: PrState,
    },
    /// The pull request is being put on the target branch at this moment.
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
    #[error("the merge queue is not empty: {live} pull requests are in it")]
    QueueNotEmpty {
        /// How many are live.
        live: usize,
    },
    /// The queue is between two modes already.
    #[error("the merge queue is already switching modes; wait until its line is empty")]
    ModeChangeInProgress,
    /// A setting is out of its bounds.
    #[error("{field} {rule}")]
    InvalidSetting {
        /// The setting, by its name on the wire.
        field: String,
        /// The rule that it breaks.
        rule: String,
    },
}
