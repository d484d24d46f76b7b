//! Helpers for tests: a clock that is set by hand, counted ids, builders and generators.

mod clock;
mod ids;

pub use clock::ManualClock;
pub use ids::CountingIds;
