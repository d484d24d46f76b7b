//! The store of announcements.

use async_trait::async_trait;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{
    AnnouncementStore, LeasedAnnouncement, QueueRef, SHOWN_AFTER, Shown, StoreError,
};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::MemoryDatabase;
use super::tables::Tables;

/// What the host shows, when it was shown, when it is due again, and the lease with its end.
#[derive(Clone, Debug)]
pub(super) struct AnnouncementRow {
    shown: Shown,
    at: Timestamp,
    pub(super) due_at: Option<Timestamp>,
    lease: Option<(Uuid, Timestamp)>,
}

impl AnnouncementRow {
    fn is_free(&self, now: Timestamp) -> bool {
        self.due_at.is_some_and(|due| due <= now) && self.lease.is_none_or(|(_, end)| end <= now)
    }
}

impl Tables {
    /// Makes pull requests due, for a commit at the time `at`.
    pub(super) fn make_due(&mut self, queue: QueueRef, prs: &[PrNumber], at: Timestamp) {
        let due = at.plus(SHOWN_AFTER);
        for pr in prs {
            let fresh =
                || AnnouncementRow { shown: Shown::default(), at, due_at: None, lease: None };
            let row = self.announcements.entry((queue, *pr)).or_insert_with(fresh);
            row.due_at = Some(row.due_at.map_or(due, |earlier| earlier.min(due)));
        }
    }
}

#[async_trait]
impl AnnouncementStore for MemoryDatabase {
    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedAnnouncement>, StoreError> {
        let mut tables = self.tables();
        let free = tables.announcements.iter_mut().filter(|(_, row)| row.is_free(now));
        let mut free: Vec<_> = free.collect();
        free.sort_by_key(|(key, row)| (row.due_at, **key));
        free.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let lease = |((queue, pr), row): (&(QueueRef, PrNumber), &mut AnnouncementRow)| {
            let name = format!("{}:{pr}:{}", queue.id, now.unix_micros());
            let lease = Uuid::new_v5(&holder, name.as_bytes());
            (row.lease, row.due_at) = (Some((lease, until)), Some(until));
            LeasedAnnouncement { queue: *queue, pr: *pr, lease, shown: row.shown.clone() }
        };
        Ok(free.into_iter().map(lease).collect())
    }

    async fn release(
        &self,
        leased: &LeasedAnnouncement,
        now: Timestamp,
        next: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let row = tables.announcements.get_mut(&(leased.queue, leased.pr));
        let Some(row) = row else { return Ok(false) };
        let Some((_, until)) = row.lease.filter(|(lease, _)| *lease == leased.lease) else {
            return Ok(false);
        };
        let named = row.due_at.filter(|due| *due < until);
        let (shown, due_at) = (leased.shown.clone(), named.or(next));
        *row = AnnouncementRow { shown, at: now, due_at, lease: None };
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
