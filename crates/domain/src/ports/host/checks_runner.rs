//! Checks runners: they run checks here, or read the checks that a host's CI runs.

use async_trait::async_trait;

use crate::ids::{BranchName, Sha};
use crate::ports::{ChecksSink, HostError, Repository};
use crate::queue::RunChecks;

/// A job: the checks of one candidate.
#[derive(Clone, Debug)]
pub struct ChecksJob {
    /// The repository.
    pub repository: Repository,
    /// The candidate and the required checks.
    pub checks: RunChecks,
}

/// Runs or reads the checks of candidates.
#[async_trait]
pub trait ChecksRunner: Send + Sync {
    /// Runs all configured checks of a candidate that are required, and reports each when it starts
    /// and when it ends. A required name that is not configured is reported immediately as failed,
    /// with the cause as its summary. Returns when all checks have completed.
    ///
    /// Checks in [`RunChecks::again`] have failed before and run again. Where the host's CI runs
    /// them, this call has it do so, unless it already has. If the host refuses, it reports these
    /// checks again as they were, at a later time.
    ///
    /// Dropping the future, or [`ChecksSink::closed`], kills every process that was started. `Err`
    /// means that the result is unknown; the job is retried.
    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError>;

    /// Stops the host's CI from testing a candidate on its test branch, whose result is not needed.
    /// Succeeds if nothing runs there, and if this installation may not stop it.
    async fn cancel(
        &self,
        _repository: &Repository,
        _sha: &Sha,
        _branch: &BranchName,
    ) -> Result<(), HostError> {
        Ok(())
    }

    /// Whether it reads the checks from a host whose CI runs them, where a rerun can turn a success
    /// back to pending. `false` if it runs them itself.
    fn reads_the_host(&self) -> bool {
        false
    }
}
