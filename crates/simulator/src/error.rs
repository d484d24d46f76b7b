//! Why a simulation has no result.

use signalbox_domain::ids::InvalidName;
use signalbox_domain::queue::{InvalidPullRequest, Refusal};
use thiserror::Error;

/// Why a simulation has no result.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// A number of the workload is out of its bounds.
    #[error("invalid {field} {value}: must be {rule}")]
    Workload {
        /// The number, as the command line names it.
        field: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        rule: &'static str,
    },
    /// A line of a history is invalid.
    #[error("line {line} of the history {rule}")]
    History {
        /// The line, from 1.
        line: usize,
        /// The rule that it breaks.
        rule: String,
    },
    /// A history cannot be replayed.
    #[error("the history cannot be replayed: {rule}")]
    Replay {
        /// The reason.
        rule: &'static str,
    },
    /// The simulation was stopped before it had a result.
    #[error("the simulation was stopped because it took too long")]
    Stopped,
    /// No duration of a test run is known or stated.
    #[error("the history cannot be replayed: it has no test durations")]
    NoDurations,
    /// The planner refused the settings or a submission.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A name that the simulation made is invalid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A pull request that the simulation made is invalid.
    #[error(transparent)]
    PullRequest(#[from] InvalidPullRequest),
    /// Nothing is due, and pull requests are still in the queue.
    #[error("{left} pull requests never leave the simulated queue; check the freezes")]
    Stuck {
        /// The pull requests in the queue.
        left: usize,
    },
    /// The planner landed something other than the target with the changes.
    #[error(
        "the planner landed pull request {pr} with the wrong tree: expected the target branch plus its changes"
    )]
    WrongTree {
        /// The first pull request of the landing.
        pr: u32,
    },
}

impl SimulationError {
    /// Whether the simulator is at fault, and not what it was given.
    pub const fn is_internal(&self) -> bool {
        matches!(self, Self::Name(_) | Self::PullRequest(_) | Self::WrongTree { .. })
    }
}
