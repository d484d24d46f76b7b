//! Running checks, on hosts that have no CI of their own.

use async_trait::async_trait;

use crate::ports::{ChecksSink, HostError, Repository};
use crate::queue::RunChecks;

/// Checks to be run.
#[derive(Clone, Debug)]
pub struct ChecksJob {
    /// In which repository.
    pub repository: Repository,
    /// What to run.
    pub checks: RunChecks,
}

/// Runs checks.
#[async_trait]
pub trait ChecksRunner: Send + Sync {
    /// Runs all configured checks of a candidate that are required, and reports each when it
    /// starts and when it ends. Every required name that is not configured is reported at once as
    /// failed, with a summary that says so. Returns when all have ended.
    ///
    /// Dropping the future, or [`ChecksSink::closed`], kills every process that was started.
    /// `Err` means that nothing can be said about the candidate; the job is tried again.
    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError>;

    /// Whether its reports are what it reads on a host that runs the checks, where a success may be
    /// pending again, and not what it does itself.
    fn reads_the_host(&self) -> bool {
        false
    }
}
