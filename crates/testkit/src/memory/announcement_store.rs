//! What hosts were last shown of pull requests.

use async_trait::async_trait;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{AnnouncementStore, QueueRef, Shown, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::MemoryDatabase;

/// What was shown, when, and who holds it until when.
#[derive(Clone, Debug)]
pub(super) struct AnnouncementRow {
    shown: Shown,
    at: Timestamp,
    claim: Option<(Uuid, Timestamp)>,
}

#[async_trait]
impl AnnouncementStore for MemoryDatabase {
    async fn unsettled_or_since(
        &self,
        queue: QueueRef,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(PrNumber, Shown)>, StoreError> {
        let tables = self.tables();
        let mut found: Vec<_> = tables
            .announcements
            .iter()
            .filter(|((of, _), row)| *of == queue && (!row.shown.settled || row.at >= since))
            .map(|((_, pr), row)| (row.shown.settled, row.at, *pr, row.shown.clone()))
            .collect();
        found.sort_by_key(|(settled, at, pr, _)| (*settled, *at, *pr));
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(found.into_iter().map(|(_, _, pr, shown)| (pr, shown)).collect())
    }

    async fn claim(
        &self,
        queue: QueueRef,
        pr: PrNumber,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Shown>, StoreError> {
        let mut tables = self.tables();
        let fresh = || AnnouncementRow { shown: Shown::default(), at: now, claim: None };
        let row = tables.announcements.entry((queue, pr)).or_insert_with(fresh);
        if row.claim.is_some_and(|(other, held)| other != holder && now < held) {
            return Ok(None);
        }
        row.claim = Some((holder, until));
        Ok(Some(row.shown.clone()))
    }

    async fn release(
        &self,
        queue: QueueRef,
        pr: PrNumber,
        holder: Uuid,
        shown: &Shown,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let row = tables.announcements.get_mut(&(queue, pr));
        let row = row.filter(|row| row.claim.is_some_and(|(by, _)| by == holder));
        let Some(row) = row else { return Ok(false) };
        *row = AnnouncementRow { shown: shown.clone(), at: now, claim: None };
        Ok(true)
    }

    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let rows = tables.announcements.iter().filter(|(_, row)| row.at < before);
        let mut old: Vec<_> = rows.map(|(key, row)| (row.at, *key)).collect();
        old.sort();
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for (_, key) in &old {
            tables.announcements.remove(key);
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}
