//! Test reports that checks of the plain git host leave behind.

use async_trait::async_trait;

use crate::flaky::Excuse;
use crate::ports::{ChecksJob, ReportFile};

/// The reports of a completed check.
pub struct LeftReports {
    /// The report files; at least one.
    pub files: Vec<ReportFile>,
    /// Whether the check ran to completion and failed.
    pub failed: bool,
    /// Whether the files are complete: all of its reports, each written by this check.
    pub whole: bool,
}

/// Receives the reports of checks.
#[async_trait]
pub trait CheckReports: Send + Sync {
    /// Receives the report files of a check of a job. For a failed check, returns whether it counts
    /// as passed because only quarantined tests failed. An error is a message for the log; the
    /// check then keeps its conclusion.
    async fn collected(
        &self,
        job: &ChecksJob,
        check: &str,
        left: LeftReports,
    ) -> Result<Option<Excuse>, String>;
}
