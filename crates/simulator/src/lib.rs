#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
#![warn(clippy::indexing_slicing, clippy::panic, clippy::as_conversions)]

mod error;
#[cfg(feature = "json")]
mod file;
mod history;
mod host;
mod numbers;
mod oracle;
mod outcome;
mod random;
mod replay;
mod simulation;
mod stays;
mod stream;
mod study;
mod workload;

pub use error::SimulationError;
#[cfg(feature = "json")]
pub use file::{PastPullRequest, PastSettings};
pub use history::{AreaNumbers, Ending, History, is_simulated};
pub use numbers::{Interval, Sample};
pub use oracle::oracle;
pub use outcome::Outcome;
pub use replay::{Example, Replay};
pub use simulation::simulate;
pub use stays::{PastStay, PastStep};
pub use stream::{Areas, Change, Conditions, Source, Stream};
pub use study::{Choice, Effort, Finding, PATIENCE, Study};
pub use workload::{Agents, Arrivals, Durations, Overlap, Workload};
