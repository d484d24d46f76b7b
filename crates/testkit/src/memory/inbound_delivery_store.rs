//! The store of processed webhook deliveries.

use async_trait::async_trait;
use signalbox_domain::ids::{HostId, OrgId};
use signalbox_domain::ports::{InboundDeliveryStore, StoreError};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;

#[async_trait]
impl InboundDeliveryStore for MemoryDatabase {
    async fn was_taken(&self, org: OrgId, host: &HostId, id: &str) -> Result<bool, StoreError> {
        Ok(self.tables().inbound_deliveries.contains_key(&(org, host.clone(), id.to_owned())))
    }

    async fn taken(
        &self,
        org: OrgId,
        host: &HostId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let key = (org, host.clone(), id.to_owned());
        if tables.inbound_deliveries.contains_key(&key) {
            return Ok(false);
        }
        tables.inbound_deliveries.insert(key, at);
        Ok(true)
    }

    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut old: Vec<_> = tables
            .inbound_deliveries
            .iter()
            .filter(|(_, at)| **at < before)
            .map(|(key, at)| (*at, key.clone()))
            .collect();
        old.sort();
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for (_, key) in &old {
            tables.inbound_deliveries.remove(key);
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}
