//! Periodic jobs, each run by one server at a time.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ports::StoreError;
use crate::time::{Span, Timestamp};

/// How long after its due time a job may be leased by a server that did not run it last, 5 seconds.
/// The last server has its caches filled; another server takes over if it is down.
pub const JOB_GRACE: Span = Span::from_micros(5_000_000);

/// Proof of a lease on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLease {
    /// The job.
    pub kind: String,
    /// The lease; a new one each time the job is leased.
    pub lease: Uuid,
}

/// A leased job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// Proof of the lease.
    pub token: JobLease,
    /// The number of failures since the last success.
    pub failures: u32,
}

/// Stores when each periodic job is due and which server runs it, one row per kind of job.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Adds missing jobs, due at `now`. An existing job that is due later than the time given with
    /// its kind becomes due at that time.
    async fn declare(&self, jobs: &[(&str, Timestamp)], now: Timestamp) -> Result<(), StoreError>;

    /// Leases all jobs of these kinds that are due at `now` and not under a valid lease, to
    /// `server` until `until`. A job that another server ran last is leased [`JOB_GRACE`] after its
    /// due time. No job has two valid leases.
    async fn lease(
        &self,
        kinds: &[&str],
        server: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedJob>, StoreError>;

    /// Extends a lease; `false` if it was lost, and the caller must stop immediately.
    async fn renew(&self, token: &JobLease, until: Timestamp) -> Result<bool, StoreError>;

    /// Ends a lease after a run that ended at `now`, with its error if it failed; the job is due
    /// again at `due_at`. `false`, and nothing is written, if the lease was lost.
    async fn finish(
        &self,
        token: &JobLease,
        now: Timestamp,
        due_at: Timestamp,
        error: Option<&str>,
    ) -> Result<bool, StoreError>;

    /// Ends the leases of `server`, so that any server runs its jobs when they are due; ends all
    /// leases for `None`, which is only valid for the only server on a database.
    async fn hand_back(&self, server: Option<Uuid>) -> Result<u64, StoreError>;
}
