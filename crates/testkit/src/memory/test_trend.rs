//! How many tests there were on each day.

use async_trait::async_trait;
use signalbox_domain::ports::{DayCounts, RepoRef, StoreError, TestTrend, Version};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;

#[async_trait]
impl TestTrend for MemoryDatabase {
    async fn uncounted(
        &self,
        day: Timestamp,
        limit: u32,
    ) -> Result<Vec<(RepoRef, Version)>, StoreError> {
        let tables = self.tables();
        let is_counted = |repo: &RepoRef, version: i64| {
            let counted = tables.flaky.days.get(&(*repo, day));
            counted.is_some_and(|(at, _)| at.0 >= version)
        };
        let changed =
            tables.flaky.repos.iter().filter(|(repo, row)| !is_counted(repo, row.version));
        let mut found: Vec<_> = changed.map(|(repo, row)| (*repo, Version(row.version))).collect();
        found.sort_by_key(|(repo, _)| repo.id);
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(found)
    }

    async fn keep_counts(
        &self,
        repo: RepoRef,
        version: Version,
        counts: &DayCounts,
    ) -> Result<(), StoreError> {
        self.tables().flaky.days.insert((repo, counts.day), (version, *counts));
        Ok(())
    }

    async fn days(&self, repo: RepoRef, since: Timestamp) -> Result<Vec<DayCounts>, StoreError> {
        let tables = self.tables();
        let days = tables.flaky.days.iter().filter(|((of, day), _)| *of == repo && *day >= since);
        Ok(days.map(|(_, (_, counts))| *counts).collect())
    }
}
