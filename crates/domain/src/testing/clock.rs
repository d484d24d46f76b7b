//! A manual clock.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::ports::Clock;
use crate::time::{Span, Timestamp};

/// A clock that stands still until it is advanced.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Creates a clock that shows this time.
    pub const fn at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.unix_micros()))
    }

    /// Advances the clock.
    pub fn advance(&self, by: Span) {
        self.0.fetch_add(by.micros(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(Timestamp::from_unix_seconds(1_767_225_600))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_micros(self.0.load(Ordering::SeqCst))
    }
}
