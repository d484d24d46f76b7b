#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
#![warn(clippy::indexing_slicing, clippy::panic, clippy::as_conversions)]

mod command;
mod error;
mod history;
mod host;
mod numbers;
mod outcome;
mod random;
mod replay;
mod simulation;
mod stream;
mod study;
mod workload;
mod written;

pub use command::Simulate;
pub use error::SimulationError;
pub use history::{Ending, History, PastPullRequest, PastSettings};
pub use numbers::{Interval, Sample};
pub use outcome::Outcome;
pub use replay::{Example, Replay};
pub use simulation::simulate;
pub use stream::{Areas, Change, Conditions, Source, Stream};
pub use study::{Choice, Finding, Study};
pub use workload::{Arrivals, Durations, MAX_TEST_MINUTES, Overlap, Workload};
