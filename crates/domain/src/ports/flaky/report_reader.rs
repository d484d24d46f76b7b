//! From uploaded bytes to what they report.

use std::io::Read;

use async_trait::async_trait;
use thiserror::Error;

use crate::flaky::UploadSource;
use crate::upload::FoundReport;

/// A file to be read.
pub struct ReportFile {
    /// Its name, for people.
    pub name: String,
    /// Its bytes.
    pub content: Box<dyn Read + Send>,
}

/// Why nothing can be made of an upload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The bytes are not what they should be; reading them again changes nothing.
    #[error("{0}")]
    Refused(String),
    /// The bytes could not be had; another try may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// Reads reports.
#[async_trait]
pub trait ReportReader: Send + Sync {
    /// Reads the files of an upload: one bundle, or any number of JUnit files. A JUnit file that
    /// cannot be read is told beside those that can; a bundle is read whole or not at all. More
    /// than `most_runs` attempts refuse the upload.
    async fn read(
        &self,
        source: UploadSource,
        files: Vec<ReportFile>,
        most_runs: usize,
    ) -> Result<FoundReport, ReadError>;
}
