//! Deduplication of webhook deliveries from hosts.

use async_trait::async_trait;

use crate::ids::{HostId, OrgId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// Remembers processed deliveries by the host's ids, so that a repeated delivery has no effect.
#[async_trait]
pub trait InboundDeliveryStore: Send + Sync {
    /// Whether a delivery has been processed.
    async fn was_taken(&self, org: OrgId, host: &HostId, id: &str) -> Result<bool, StoreError>;

    /// Records a processed delivery; `false` if it was recorded before.
    async fn taken(
        &self,
        org: OrgId,
        host: &HostId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes records from before a time, at most `limit`; returns the number of deleted records.
    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
