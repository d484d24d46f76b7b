//! Helpers for tests: a manual clock, sequential ids, and a small world around one queue.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests want to stop where something impossible happens"
)]

mod any_policy;
mod clock;
mod ids;
mod matrix;
mod quiet;
mod world;

pub use any_policy::AnyPolicy;
pub use clock::ManualClock;
pub use ids::CountingIds;
pub use matrix::matrix;
pub use quiet::Quiet;
pub use world::{Content, ExternalRequest, Rules, World};
