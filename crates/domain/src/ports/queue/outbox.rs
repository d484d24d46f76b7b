//! The outbox: effects waiting to run.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::RunId;
use crate::ports::{QueueRef, StoreError};
use crate::queue::{Effect, EffectClass};
use crate::time::Timestamp;

/// Proof of a lease on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken {
    /// The outbox row.
    pub row: i64,
    /// The lease; a new one each time the row is leased.
    pub lease: Uuid,
}

/// A leased effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Proof of the lease.
    pub token: LeaseToken,
    /// The queue that it belongs to.
    pub queue: QueueRef,
    /// Its number within the queue; together they identify repeats.
    pub number: u64,
    /// The effect.
    pub effect: Effect,
    /// The number of earlier leases.
    pub attempts: u32,
    /// When the first attempt failed, if it did.
    pub failing_since: Option<Timestamp>,
    /// The id of the request that caused it, if any.
    pub request: Option<String>,
}

/// The size of a backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of due items without a lease.
    pub due: u64,
    /// When the oldest of them became due; `None` if there is none.
    pub oldest: Option<Timestamp>,
}

/// An effect that has failed and has not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingEffect {
    /// The queue that it belongs to.
    pub queue: QueueRef,
    /// Its number within the queue.
    pub number: u64,
    /// The effect.
    pub effect: Effect,
    /// When the first attempt failed.
    pub since: Timestamp,
    /// The number of attempts.
    pub attempts: u32,
    /// The error of the last attempt.
    pub error: String,
}

/// Failing effects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failing {
    /// Their number.
    pub count: u64,
    /// The effects that have failed for the longest time, longest first.
    pub longest: Vec<FailingEffect>,
}

/// Stores effects until they are done. Delivery is at least once: an effect that is leased and not
/// finished becomes due again.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Leases up to `limit` effects of a class that are due at `now` and not under a valid lease,
    /// oldest first, to `holder` until `until`. No effect has two valid leases.
    async fn lease(
        &self,
        class: EffectClass,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Leased>, StoreError>;

    /// Extends a lease; `false` if it was lost or revoked, and the caller must stop immediately.
    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError>;

    /// Removes a completed effect; `false`, and nothing is removed, if the lease was lost.
    async fn finish(&self, token: LeaseToken) -> Result<bool, StoreError>;

    /// Ends a lease; the effect is due again at `at`. `false` if the lease was lost.
    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError>;

    /// Removes a run's [`Effect::RunChecks`], even under a lease, which then fails at its next
    /// renewal. Returns the number of removed effects.
    async fn revoke_checks(&self, queue: QueueRef, run: RunId) -> Result<u64, StoreError>;

    /// The runs of a queue for which the outbox holds an [`Effect::BuildCandidate`] or an
    /// [`Effect::Land`], leased or not.
    async fn answering(&self, queue: QueueRef) -> Result<Vec<RunId>, StoreError>;

    /// Ends every lease of `holder`, or all leases for `None`; the effects are due immediately.
    /// `None` is only valid at the start of the only server on a database.
    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError>;

    /// Effects that have failed since `before` or earlier, of one queue or of all (`None`); at most
    /// `limit` of them are listed.
    async fn failing(
        &self,
        queue: Option<QueueRef>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Failing, StoreError>;

    /// The backlog of a class.
    async fn backlog(&self, class: EffectClass, now: Timestamp) -> Result<Backlog, StoreError>;
}
