//! The sink of a checks runner's reports.

use async_trait::async_trait;
use thiserror::Error;

use crate::ports::CheckOutput;
use crate::queue::CheckReport;

/// The sink accepts no more reports, because the run was cancelled or its lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the run's checks are no longer wanted")]
pub struct SinkClosed;

/// Receives the reports and the output of checks.
#[async_trait]
pub trait ChecksSink: Send + Sync {
    /// Reports checks: queued, in progress, completed. On [`SinkClosed`] the runner kills its
    /// processes and returns.
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed>;

    /// Stores a check's output. A runner may store what a running check has printed so far, and
    /// stores the whole output when the check has ended.
    async fn output(&self, output: CheckOutput) -> Result<(), SinkClosed>;

    /// Returns when the sink is closed.
    async fn closed(&self);
}
