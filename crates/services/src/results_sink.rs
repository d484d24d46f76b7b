//! The sink of processed test results.

use async_trait::async_trait;

use crate::Error;
use signalbox_domain::flaky::{IngestOutcome, ReportedRun, Upload};

/// Receives test results: stores runs and summaries, registers tests and their aliases, and
/// evaluates monitors.
#[async_trait]
pub trait ResultsSink: Send + Sync {
    /// Stores an upload's runs, all or none. A repeated upload changes nothing, and the result says
    /// that it is a repeat.
    async fn take_in(
        &self,
        upload: &Upload,
        runs: Vec<ReportedRun>,
    ) -> Result<IngestOutcome, Error>;
}
