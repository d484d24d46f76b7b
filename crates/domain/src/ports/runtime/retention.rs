//! Forgetting what is old.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::time::Timestamp;

/// Deletes history in small steps, so that nobody waits long for a turn to write. What a queue needs
/// to go on is never history: its state is in its header, its live entries and its runs.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Deletes journal records of queues from before a time, oldest first and at most `limit`, with
    /// the changes of state that are listed from them; returns how many.
    async fn prune_journal(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
