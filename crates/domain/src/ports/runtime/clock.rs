//! The clock.

use crate::time::Timestamp;

/// Provides the time. A use case reads it once.
pub trait Clock: Send + Sync {
    /// The present time in UTC.
    fn now(&self) -> Timestamp;
}
