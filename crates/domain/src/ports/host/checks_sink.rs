//! Where a checks runner reports to.

use async_trait::async_trait;
use thiserror::Error;

use crate::ports::CheckOutput;
use crate::queue::CheckReport;

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

    /// Returns when the sink is closed.
    async fn closed(&self);
}
