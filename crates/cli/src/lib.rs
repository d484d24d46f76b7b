#![doc = include_str!("../README.md")]

mod clock;
mod error;
mod events;
mod flaky_tests;
mod gate;
mod import;
mod proof;
mod queue;
mod queue_history;
mod queue_set;
mod queue_status;
mod queue_targets;
mod queue_watch;
mod queue_why;
mod server;
mod simulate;
mod tests;
mod webhooks;

pub use error::CliError;
pub use events::{Events, events};
pub use proof::{Proof, proof};
pub use queue::{Queue, queue};
pub use queue_set::SettingError;
pub use server::{Organization, Repository};
pub use simulate::{Simulate, simulate};
pub use tests::{Tests, tests};
pub use webhooks::{Webhooks, webhooks};

use signalbox_terminal::say;
