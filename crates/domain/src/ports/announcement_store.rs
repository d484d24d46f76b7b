//! What hosts were last shown of pull requests.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::{PrNumber, Sha};
use crate::time::Timestamp;

use super::{QueueRef, StoreError};

/// What a host was last shown of a pull request in a queue: a fingerprint for each part, `None`
/// for a part that was never shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The commit status.
    pub status: Option<Uuid>,
    /// The queue's comment.
    pub comment: Option<Uuid>,
    /// The labels.
    pub labels: Option<Uuid>,
    /// The landing after which the pull request was closed, or found to be.
    pub closed: Option<Uuid>,
    /// The head that the pull request had when it was closed, if it was not the one that landed.
    pub newer_head: Option<Sha>,
    /// Whether the entry has ended and everything that the settings ask for is shown.
    pub settled: bool,
}

/// Remembers what was shown, so that neither a restart nor a second server shows it again, and so
/// that what could not be shown is shown later. A claim keeps servers from showing the same
/// pull request at the same time.
#[async_trait]
pub trait AnnouncementStore: Send + Sync {
    /// What was shown of pull requests that are not settled, or that were shown since `since`:
    /// unsettled ones first, each by age, oldest first, at most `limit`.
    async fn unsettled_or_since(
        &self,
        queue: QueueRef,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(PrNumber, Shown)>, StoreError>;

    /// Claims a pull request until `until` and returns what was shown of it. `None` while another
    /// holder's claim lasts.
    async fn claim(
        &self,
        queue: QueueRef,
        pr: PrNumber,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Shown>, StoreError>;

    /// Writes what is shown now and ends the claim. `false`, and nothing is written, when another
    /// holder has claimed the pull request meanwhile.
    async fn release(
        &self,
        queue: QueueRef,
        pr: PrNumber,
        holder: Uuid,
        shown: &Shown,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Forgets what was last shown before `before`, settled or not, at most `limit` of them.
    /// Returns how many.
    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
