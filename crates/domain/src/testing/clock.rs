//! A clock that is set by hand.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::ports::Clock;
use crate::time::{Span, Timestamp};

/// Stands still until it is advanced.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows that time.
    pub const fn at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.unix_micros()))
    }

    /// Moves it on.
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
