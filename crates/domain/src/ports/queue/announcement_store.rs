//! Announcements: what hosts last showed of pull requests, and what is due to be shown.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::{PrNumber, Sha};
use crate::ports::{QueueRef, StoreError};
use crate::time::{Span, Timestamp};

/// The delay between a commit and its announcement, 3 seconds. States that last for a shorter time
/// are not announced.
pub const SHOWN_AFTER: Span = Span::from_micros(3_000_000);

/// What a host last showed of a pull request in a queue: a fingerprint of each part, `None` for a
/// part that was never shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The commit status.
    pub status: Option<Uuid>,
    /// The queue's comment.
    pub comment: Option<Uuid>,
    /// The labels.
    pub labels: Option<Uuid>,
    /// The landing after which the pull request was closed, or found closed.
    pub closed: Option<Uuid>,
    /// The pull request's head when it was closed, if it is not the landed one.
    pub newer_head: Option<Sha>,
}

/// A pull request leased for announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedAnnouncement {
    /// The queue.
    pub queue: QueueRef,
    /// The pull request.
    pub pr: PrNumber,
    /// The lease; a new one each time the pull request is leased.
    pub lease: Uuid,
    /// What the host shows of it.
    pub shown: Shown,
}

/// Stores which pull requests are due for announcement and what was announced, so that neither a
/// restart nor a second server repeats an announcement, and failed ones are retried.
///
/// A commit makes the pull requests that it names due at its time plus [`SHOWN_AFTER`], in its own
/// transaction; an earlier due time is kept.
#[async_trait]
pub trait AnnouncementStore: Send + Sync {
    /// Leases up to `limit` pull requests that are due at `now` and not under a valid lease,
    /// longest wait first, until `until`. They are due again at `until`, or earlier after a commit.
    /// No pull request has two valid leases.
    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedAnnouncement>, StoreError>;

    /// Writes `leased.shown` and ends the lease. The pull request is due again at `next`, or not at
    /// all for `None`; if a commit has named it during the lease, the due time of that commit
    /// applies. `false`, and nothing is written, if the lease was lost.
    async fn release(
        &self,
        leased: &LeasedAnnouncement,
        now: Timestamp,
        next: Option<Timestamp>,
    ) -> Result<bool, StoreError>;

    /// Deletes records that were last shown before `before`, at most `limit`; returns the number of
    /// deleted records.
    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
