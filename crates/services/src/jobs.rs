//! Periodic jobs: of all servers on a database, one at a time runs each job.

use std::sync::Arc;

use signalbox_domain::ports::{Clock, JobStore, LeasedJob};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use super::Error;

/// The duration of a lease on a job, in seconds; renewed while the job runs.
const LEASE_SECONDS: u32 = 15;
/// The first and the longest pause after a failure, in seconds. A job with a longer period waits
/// for its period.
const PAUSE_SECONDS: (u32, u32) = (1, 30);

/// Leases periodic jobs for one server.
pub struct JobService {
    jobs: Arc<dyn JobStore>,
    clock: Arc<dyn Clock>,
    server: Uuid,
}

impl JobService {
    /// Creates the service of the server with this id.
    pub const fn new(jobs: Arc<dyn JobStore>, clock: Arc<dyn Clock>, server: Uuid) -> Self {
        Self { jobs, clock, server }
    }

    /// The server's id.
    pub const fn server(&self) -> Uuid {
        self.server
    }

    /// The longest interval between renewals of a lease.
    pub fn renewal() -> std::time::Duration {
        Span::seconds(LEASE_SECONDS / 3).to_std()
    }

    /// Adds the jobs, each with its period, that the database does not have yet. New jobs are due
    /// immediately.
    pub async fn declare(&self, jobs: &[(&str, Span)]) -> Result<(), Error> {
        let now = self.clock.now();
        let jobs: Vec<(&str, Timestamp)> =
            jobs.iter().map(|(kind, period)| (*kind, now.plus(*period))).collect();
        Ok(self.jobs.declare(&jobs, now).await?)
    }

    /// Leases the jobs of those kinds that are due.
    pub async fn lease(&self, kinds: &[&str]) -> Result<Vec<LeasedJob>, Error> {
        let now = self.clock.now();
        let until = now.plus(Span::seconds(LEASE_SECONDS));
        Ok(self.jobs.lease(kinds, self.server, now, until).await?)
    }

    /// Extends a lease; `false` if it was lost.
    pub async fn renew(&self, leased: &LeasedJob) -> Result<bool, Error> {
        let until = self.clock.now().plus(Span::seconds(LEASE_SECONDS));
        Ok(self.jobs.renew(&leased.token, until).await?)
    }

    /// Ends a run: the job is due again after its period, or after a pause that grows with each
    /// failure in a row.
    pub async fn finish(
        &self,
        leased: &LeasedJob,
        period: Span,
        error: Option<&str>,
    ) -> Result<(), Error> {
        let now = self.clock.now();
        let (first, longest) = PAUSE_SECONDS;
        let pause = first.saturating_mul(1 << leased.failures.min(10)).min(longest);
        let pause = error.map_or(period, |_| period.max(Span::seconds(pause)));
        // If the lease was lost, the run of the server that has it counts.
        let _kept = self.jobs.finish(&leased.token, now, now.plus(pause), error).await?;
        Ok(())
    }

    /// Ends this server's claim to its jobs; with `all`, the claims of all servers, which is only
    /// valid at the start of the only server on a database.
    pub async fn hand_back(&self, all: bool) -> Result<u64, Error> {
        let server = (!all).then_some(self.server);
        Ok(self.jobs.hand_back(server).await?)
    }
}
