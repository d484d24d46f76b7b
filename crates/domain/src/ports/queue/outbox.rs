//! Effects waiting to be run.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::RunId;
use crate::ports::{QueueRef, StoreError};
use crate::queue::{Effect, EffectClass};
use crate::time::Timestamp;

/// Proof of a lease: the row and the lease that it was given under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken {
    /// The outbox row.
    pub row: i64,
    /// The lease; a new one each time the row is leased.
    pub lease: Uuid,
}

/// An effect that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Proof of the lease.
    pub token: LeaseToken,
    /// Whose effect it is.
    pub queue: QueueRef,
    /// Its number within the queue; with the queue's id it makes repeats recognizable.
    pub number: u64,
    /// What to do.
    pub effect: Effect,
    /// How often it was leased before.
    pub attempts: u32,
    /// When the first try failed, if it did.
    pub failing_since: Option<Timestamp>,
    /// The request that caused it, if one did.
    pub request: Option<String>,
}

/// How much waits, in a lane or elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// What is due and not leased.
    pub due: u64,
    /// When the oldest of them became due.
    pub oldest: Option<Timestamp>,
}

/// An effect that has failed and has not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingEffect {
    /// Whose effect it is.
    pub queue: QueueRef,
    /// Its number within the queue.
    pub number: u64,
    /// What is to be done.
    pub effect: Effect,
    /// When the first try failed.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// What the last try failed with.
    pub error: String,
}

/// Effects that fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failing {
    /// How many there are.
    pub count: u64,
    /// Those that have failed for longest, longest first.
    pub longest: Vec<FailingEffect>,
}

/// Holds effects until they are done. At least once: what is leased and not finished comes back.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Takes up to `limit` effects of a lane that are due at `now` and not under a lease that is
    /// still good, oldest first, for `holder` until `until`. No effect is given to two holders at
    /// once.
    async fn lease(
        &self,
        lane: EffectClass,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Leased>, StoreError>;

    /// Extends a lease. `false` when it was lost or revoked: stop at once.
    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError>;

    /// Removes an effect that is done. `false` when the lease was lost; then nothing is removed.
    async fn finish(&self, token: LeaseToken) -> Result<bool, StoreError>;

    /// Gives an effect back, to be tried again from `at` on. `false` when the lease was lost.
    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError>;

    /// Removes a run's [`Effect::RunChecks`], also while it is leased: its holder learns of it at
    /// its next renewal. Returns how many were removed.
    async fn revoke_checks(&self, queue: QueueRef, run: RunId) -> Result<u64, StoreError>;

    /// The runs of a queue for which the outbox holds an [`Effect::BuildCandidate`] or an
    /// [`Effect::Land`], leased or not.
    async fn answering(&self, queue: QueueRef) -> Result<Vec<RunId>, StoreError>;

    /// Gives back everything that `holder` has leased, due at once; everything that anybody has
    /// leased for `None`, which only the start of the only server on a database may ask for.
    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError>;

    /// Effects whose first try failed at `before` or earlier and that have not succeeded since, of
    /// one queue or of all (`None`). At most `limit` of them are told one by one.
    async fn failing(
        &self,
        queue: Option<QueueRef>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Failing, StoreError>;

    /// How much waits in a lane.
    async fn backlog(&self, lane: EffectClass, now: Timestamp) -> Result<Backlog, StoreError>;
}
