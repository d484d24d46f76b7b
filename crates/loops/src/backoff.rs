//! Exponential backoff while a job keeps failing.

use std::time::Duration;

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// Counts failures in a row.
#[derive(Debug)]
pub struct Backoff {
    usual: Duration,
    failures: u32,
}

impl Backoff {
    /// No failures yet; `usual` is the pause between successful tries.
    pub const fn new(usual: Duration) -> Self {
        Self { usual, failures: 0 }
    }

    /// Forgets the failures.
    pub const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure.
    pub const fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Whether the last attempt failed.
    pub const fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// The pause before the next attempt: doubled for every failure, never shorter than usual.
    pub fn pause(&self) -> Duration {
        let doubled = self.usual.saturating_mul(1 << self.failures.min(10));
        doubled.min(LONGEST).max(self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_it_fails_and_are_usual_again_afterwards() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        let mut pauses = Vec::new();
        for _ in 0..7 {
            pauses.push(backoff.pause().as_secs());
            backoff.failed();
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        backoff.succeeded();
        assert_eq!((backoff.pause().as_secs(), backoff.is_failing()), (1, false));
    }

    #[test]
    fn a_long_usual_pause_is_never_shortened() {
        let mut backoff = Backoff::new(Duration::from_mins(10));
        backoff.failed();
        assert_eq!(backoff.pause(), Duration::from_mins(10));
    }
}
