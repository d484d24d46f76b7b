#![doc = include_str!("../README.md")]

mod error;
mod events;
mod flaky_tests;
mod queue;
mod server;
mod tests;
mod webhooks;

pub use error::CliError;
pub use events::{Events, events};
pub use queue::{Queue, queue};
pub use tests::{Tests, tests};
pub use webhooks::{Webhooks, webhooks};

use signalbox_terminal::say;
