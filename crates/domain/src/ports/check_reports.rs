//! Reports that checks of the plain git host leave behind.

use async_trait::async_trait;

use super::{ChecksJob, ReportFile};

/// Takes in the reports of a check.
#[async_trait]
pub trait CheckReports: Send + Sync {
    /// Takes in the files that a check of a job wrote. It never fails the check: what goes wrong
    /// comes back as words for the log.
    async fn collected(
        &self,
        job: &ChecksJob,
        check: &str,
        files: Vec<ReportFile>,
    ) -> Result<(), String>;
}
