//! Deletion of old history.

use async_trait::async_trait;
use signalbox_domain::ports::{Retention, StoreError};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;

/// The keys of the oldest rows from before a time, at most `limit`.
fn oldest<K: Ord>(
    all: impl Iterator<Item = (Timestamp, K)>,
    before: Timestamp,
    limit: u32,
) -> Vec<K> {
    let mut old: Vec<(Timestamp, K)> = all.filter(|(at, _)| *at < before).collect();
    old.sort_unstable();
    old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    old.into_iter().map(|(_, key)| key).collect()
}

#[async_trait]
impl Retention for MemoryDatabase {
    async fn prune_journal(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let all = tables.queues.iter().flat_map(|(queue, row)| {
            row.journal.iter().map(|(number, record)| (record.at, (*queue, *number)))
        });
        let old = oldest(all, before, limit);
        for (queue, number) in &old {
            if let Some(row) = tables.queues.get_mut(queue) {
                row.journal.remove(number);
            }
        }
        Ok(u64::try_from(old.len()).unwrap_or(0))
    }
}
