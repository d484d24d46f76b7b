//! Small adapters: the time, ids, numbers that look random and repeat with every run, and ears
//! that hear nothing.

use async_trait::async_trait;
use signalbox_domain::ports::{Clock, IdSource};
use signalbox_domain::time::Timestamp;
use signalbox_http::Readiness;
use uuid::Uuid;

/// The system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock adapter")]
    fn now(&self) -> Timestamp {
        time::OffsetDateTime::now_utc().into()
    }
}

/// Random ids.
pub(crate) struct RandomIds;

impl IdSource for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the adapter for ids")]
    fn new_id(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// Always ready.
pub(crate) struct Ready;

#[async_trait]
impl Readiness for Ready {
    async fn missing(&self) -> Option<String> {
        None
    }
}

/// Numbers by the xorshift rule with 64 bits.
pub(crate) struct Random(u64);

impl Random {
    /// Numbers that are the same for the same seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next number, below `bound` (at least 1).
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}
