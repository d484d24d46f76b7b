//! Sequential ids.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use crate::ports::IdSource;

/// Generates the ids 1, 2, 3 …, so that every run of a test has the same ids.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

impl CountingIds {
    /// Starts after a number.
    pub const fn after(number: u64) -> Self {
        Self(AtomicU64::new(number))
    }
}

impl IdSource for CountingIds {
    fn new_id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::SeqCst) + 1))
    }
}
