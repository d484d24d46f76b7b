//! The sink of a checks runner's reports.

use async_trait::async_trait;
use thiserror::Error;

use crate::ports::CheckOutput;
use crate::queue::CheckReport;
use crate::time::Timestamp;

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

    /// Stores a check's output in place of an earlier one. On [`SinkClosed`] the runner returns, and
    /// the checks may run again.
    async fn output(&self, output: CheckOutput) -> Result<(), SinkClosed>;

    /// Stores what a running check has printed so far in place of the output that this runner has
    /// written at a time, unless another runner has written one since. Returns whether it did;
    /// if not, that is not an error.
    async fn output_so_far(&self, _output: CheckOutput, _written: Timestamp) -> bool {
        false
    }

    /// Returns when the sink is closed.
    async fn closed(&self);
}
