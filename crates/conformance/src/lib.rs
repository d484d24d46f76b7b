#![doc = include_str!("../README.md")]
#![expect(
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    reason = "a suite panics at the first violation of a contract"
)]

pub mod checks_runner;
pub mod fake_host;
pub mod forge;
pub mod git_host;
pub mod git_place;
mod plain_events;
pub mod stores;
pub mod webhook_decoder;

pub use plain_events::PlainEvents;
