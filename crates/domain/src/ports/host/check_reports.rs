//! Reports that checks of the plain git host leave behind.

use async_trait::async_trait;

use crate::flaky::Excuse;
use crate::ports::{ChecksJob, ReportFile};

/// What a check that ended has left behind.
pub struct LeftReports {
    /// Its reports; at least one.
    pub files: Vec<ReportFile>,
    /// Whether it ended by itself and said that something failed.
    pub failed: bool,
    /// Whether the files are all of its reports, and it wrote each of them.
    pub whole: bool,
}

/// Takes in the reports of a check.
#[async_trait]
pub trait CheckReports: Send + Sync {
    /// Takes in the files that a check of a job wrote, and says of one that failed whether it
    /// counts as passed all the same. What goes wrong comes back as words for the log; the check
    /// then counts as it ended.
    async fn collected(
        &self,
        job: &ChecksJob,
        check: &str,
        left: LeftReports,
    ) -> Result<Option<Excuse>, String>;
}
