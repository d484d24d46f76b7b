//! How many tests of a repository were flaky, broken and quarantined, day by day.

use async_trait::async_trait;

use crate::ports::{RepoRef, StoreError, Version};
use crate::time::Timestamp;

/// The counts of a repository's tests, as last counted on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayCounts {
    /// The start of the day, in UTC.
    pub day: Timestamp,
    /// Flaky tests.
    pub flaky: u64,
    /// Broken tests.
    pub broken: u64,
    /// Quarantined tests, whatever their status.
    pub quarantined: u64,
}

/// Keeps the counts of days. They are for reports; no decision depends on them.
#[async_trait]
pub trait TestTrend: Send + Sync {
    /// Repositories that have not been counted on a day, or have changed since, with their versions;
    /// at most `limit`. A repository without results and settings is not among them.
    async fn uncounted(
        &self,
        day: Timestamp,
        limit: u32,
    ) -> Result<Vec<(RepoRef, Version)>, StoreError>;

    /// Keeps the counts of a day, which were read at a version or later. Replaces earlier counts of the
    /// same day.
    async fn keep_counts(
        &self,
        repo: RepoRef,
        version: Version,
        counts: &DayCounts,
    ) -> Result<(), StoreError>;

    /// The counts of the days from `since` on, the oldest first. A day on which the server did not
    /// run has none.
    async fn days(&self, repo: RepoRef, since: Timestamp) -> Result<Vec<DayCounts>, StoreError>;
}
