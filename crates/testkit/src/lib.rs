#![doc = include_str!("../README.md")]
#![expect(
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    reason = "test support stops at once where something impossible happens"
)]

pub mod conformance;
pub mod fake_host;
pub mod fake_results;
pub mod fake_webhooks;
pub mod git_place;
pub mod github_double;
pub mod memory;
mod plain_events;
pub mod postgres;
pub mod s3_double;
pub mod simulation;
pub mod small_server;

pub use plain_events::PlainEvents;
