//! What hosts were last shown of pull requests, and what is to be shown next.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::{PrNumber, Sha};
use crate::ports::{QueueRef, StoreError};
use crate::time::{Span, Timestamp};

/// How long after a commit its state is shown: states that last for a shorter time are not.
pub const SHOWN_AFTER: Span = Span::from_micros(3_000_000);

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
}

/// A pull request that was leased to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedAnnouncement {
    /// The queue.
    pub queue: QueueRef,
    /// The pull request.
    pub pr: PrNumber,
    /// The lease; a new one each time the pull request is leased.
    pub lease: Uuid,
    /// What was shown of it before.
    pub shown: Shown,
}

/// Keeps which pull requests are to be shown and what was shown of each, so that neither a restart
/// nor a second server shows the same again, and what could not be shown is shown later.
///
/// A commit makes the pull requests that it names due ([`SHOWN_AFTER`] its time) in its own
/// transaction; one that is due earlier stays so.
#[async_trait]
pub trait AnnouncementStore: Send + Sync {
    /// Takes up to `limit` pull requests that are due at `now` and not under a lease that is still
    /// good, those first that have waited longest, until `until`. They are due again at `until`,
    /// or earlier by a commit. None is given to two holders at once.
    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedAnnouncement>, StoreError>;

    /// Writes what is shown now, `leased.shown`, and ends the lease. The pull request is due again
    /// at `next`, or not at all for `None`; if a commit has named it during the lease, it is due
    /// as that commit says. `false`, and nothing is written, when the lease was lost.
    async fn release(
        &self,
        leased: &LeasedAnnouncement,
        now: Timestamp,
        next: Option<Timestamp>,
    ) -> Result<bool, StoreError>;

    /// Forgets what was last shown before `before`, at most `limit` of them. Returns how many.
    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
