#![doc = include_str!("../README.md")]
#![expect(
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    reason = "test support stops at once where something impossible happens"
)]

pub mod double;
pub mod fake_results;
pub mod fake_webhooks;
pub mod github_double;
pub mod memory;
pub mod postgres;
pub mod s3_double;
pub mod simulation;
pub mod small_server;
