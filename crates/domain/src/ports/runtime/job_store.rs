//! Periodic jobs, each run by one server at a time.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ports::StoreError;
use crate::time::{Span, Timestamp};

/// How long after its due time a job may be leased by a server that did not run it last. What a
/// server remembers of its last run stays useful, and another one takes over when it is gone.
pub const JOB_GRACE: Span = Span::from_micros(5_000_000);

/// Proof of a lease on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLease {
    /// The job.
    pub kind: String,
    /// The lease; a new one each time the job is leased.
    pub lease: Uuid,
}

/// A job that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// Proof of the lease.
    pub token: JobLease,
    /// How often it has failed since it last succeeded.
    pub failures: u32,
}

/// Keeps when each periodic job is due and which server runs it. A kind of job has one row.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Adds the jobs that are missing, due at `now`. A job that is there and due later than the
    /// time given with its kind is due at that time.
    async fn declare(&self, jobs: &[(&str, Timestamp)], now: Timestamp) -> Result<(), StoreError>;

    /// Leases all jobs of those kinds that are due at `now` and not under a lease that is still
    /// good, for `server` until `until`. A job that another server has run last is leased
    /// [`JOB_GRACE`] after its due time. No job is given to two servers at once.
    async fn lease(
        &self,
        kinds: &[&str],
        server: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedJob>, StoreError>;

    /// Extends a lease. `false` when it was lost: stop at once.
    async fn renew(&self, token: &JobLease, until: Timestamp) -> Result<bool, StoreError>;

    /// Ends a lease after a run that ended at `now`, with its error if it failed; the job is due
    /// again at `due_at`. `false` when the lease was lost; then nothing is written.
    async fn finish(
        &self,
        token: &JobLease,
        now: Timestamp,
        due_at: Timestamp,
        error: Option<&str>,
    ) -> Result<bool, StoreError>;

    /// Ends the leases of `server` and lets every server run its jobs when they are due; the
    /// leases of all servers for `None`, which only the only server on a database may ask for.
    async fn hand_back(&self, server: Option<Uuid>) -> Result<u64, StoreError>;
}
