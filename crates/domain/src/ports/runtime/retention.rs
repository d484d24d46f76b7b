//! Deletion of old history.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::time::Timestamp;

/// Deletes history in small steps, so that other writers do not wait long. The state of a queue
/// (header, live entries and runs) is never history.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Deletes journal records of queues from before a time, oldest first, at most `limit`, with
    /// their listed moves; returns the number of deleted records.
    async fn prune_journal(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
