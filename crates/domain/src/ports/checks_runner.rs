//! Running checks, on hosts that have no CI of their own.

use async_trait::async_trait;
use thiserror::Error;

use crate::queue::{CheckReport, RunChecks};

use super::{CheckOutput, HostError, Repository};

/// Checks to be run.
#[derive(Clone, Debug)]
pub struct ChecksJob {
    /// In which repository.
    pub repository: Repository,
    /// What to run.
    pub checks: RunChecks,
}

/// Nobody wants reports any more: the run was cancelled, or its lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the run's checks are no longer wanted")]
pub struct SinkClosed;

/// Where reports go.
#[async_trait]
pub trait ChecksSink: Send + Sync {
    /// Reports checks: queued, in progress, completed. On [`SinkClosed`] the runner kills what it
    /// has started and returns.
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed>;

    /// Keeps a check's output.
    async fn output(&self, output: CheckOutput) -> Result<(), SinkClosed>;

    /// Returns when nobody wants reports any more.
    async fn closed(&self);
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
