//! Events that hosts have told.

use async_trait::async_trait;
use signalbox_domain::ids::{HostId, OrgId};
use signalbox_domain::ports::{HeardStore, StoreError};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;

#[async_trait]
impl HeardStore for MemoryDatabase {
    async fn was_taken(&self, org: OrgId, host: &HostId, id: &str) -> Result<bool, StoreError> {
        Ok(self.tables().heard.contains_key(&(org, host.clone(), id.to_owned())))
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
        if tables.heard.contains_key(&key) {
            return Ok(false);
        }
        tables.heard.insert(key, at);
        Ok(true)
    }

    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut old: Vec<_> = tables
            .heard
            .iter()
            .filter(|(_, at)| **at < before)
            .map(|(key, at)| (*at, key.clone()))
            .collect();
        old.sort();
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for (_, key) in &old {
            tables.heard.remove(key);
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}
