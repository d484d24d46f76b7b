//! The time.

use crate::time::Timestamp;

/// Tells the time. Read once per use case, in `service`.
pub trait Clock: Send + Sync {
    /// The time now, in UTC.
    fn now(&self) -> Timestamp;
}
