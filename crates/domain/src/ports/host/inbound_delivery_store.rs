//! Which events of hosts have been taken in.

use async_trait::async_trait;

use crate::ids::{HostId, OrgId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// Remembers events by the host's own ids, so that one that comes twice does nothing the second time.
#[async_trait]
pub trait InboundDeliveryStore: Send + Sync {
    /// Whether that event has been taken in.
    async fn was_taken(&self, org: OrgId, host: &HostId, id: &str) -> Result<bool, StoreError>;

    /// Remembers an event; `false` when it was remembered already.
    async fn taken(
        &self,
        org: OrgId,
        host: &HostId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Forgets what was taken in before a time, at most `limit`; returns how many.
    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
