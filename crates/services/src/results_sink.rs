//! Where results of tests go once they are read.

use async_trait::async_trait;

use crate::Error;
use signalbox_domain::flaky::{IngestOutcome, ReportedRun, Upload};

/// Takes results in: stores runs and summaries, learns tests and their other ids, and judges.
#[async_trait]
pub trait ResultsSink: Send + Sync {
    /// Takes an upload's runs in, all of them or none. The same upload again changes nothing and
    /// says so.
    async fn take_in(
        &self,
        upload: &Upload,
        runs: Vec<ReportedRun>,
    ) -> Result<IngestOutcome, Error>;
}
