//! The event log.

use async_trait::async_trait;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{EventLog, PublicEvent, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::MemoryDatabase;

#[async_trait]
impl EventLog for MemoryDatabase {
    async fn after(
        &self,
        org: OrgId,
        position: i64,
        kinds: Option<&[String]>,
        limit: u32,
    ) -> Result<Vec<PublicEvent>, StoreError> {
        let tables = self.tables();
        let later = tables.events.range(position.saturating_add(1)..).map(|(_, event)| event);
        let asked = later
            .filter(|event| event.org == org)
            .filter(|event| kinds.is_none_or(|kinds| kinds.contains(&event.kind)));
        Ok(asked.take(usize::try_from(limit).unwrap_or(usize::MAX)).cloned().collect())
    }

    async fn event(&self, org: OrgId, id: Uuid) -> Result<Option<PublicEvent>, StoreError> {
        let tables = self.tables();
        Ok(tables.events.values().find(|event| event.org == org && event.id == id).cloned())
    }

    async fn newest(&self, org: OrgId) -> Result<i64, StoreError> {
        let tables = self.tables();
        let mut newest = tables.events.values().rev().filter(|event| event.org == org);
        Ok(newest.next().map_or(0, |event| event.position))
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut old: Vec<(Timestamp, i64)> = tables
            .events
            .values()
            .filter(|event| event.at < before)
            .map(|event| (event.at, event.position))
            .collect();
        old.sort_unstable();
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for (_, position) in &old {
            tables.events.remove(position);
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}
