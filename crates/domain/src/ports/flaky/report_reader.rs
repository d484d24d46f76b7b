//! The reader of test reports.

use std::io::Read;

use async_trait::async_trait;
use thiserror::Error;

use crate::flaky::UploadSource;
use crate::upload::{Claims, FoundReport};

/// A report file.
pub struct ReportFile {
    /// Its name, for messages.
    pub name: String,
    /// Its bytes.
    pub content: Box<dyn Read + Send>,
}

/// Why an upload could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The files are invalid; a retry would fail, too.
    #[error("{0}")]
    Refused(String),
    /// The bytes could not be read; a retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// Reads reports.
#[async_trait]
pub trait ReportReader: Send + Sync {
    /// Reads the files of an upload: one bundle, or any number of JUnit files; of an import, one
    /// bundle, one line of NDJSON or any number of JUnit files. An invalid JUnit file is reported
    /// beside the valid ones; anything else is read completely or not at all. More than `most_runs`
    /// attempts refuse the upload.
    async fn read(
        &self,
        source: UploadSource,
        files: Vec<ReportFile>,
        most_runs: usize,
    ) -> Result<FoundReport, ReadError>;

    /// Checks a line of NDJSON completely, and reads its metadata of the run. The error is a
    /// fragment that names the column and the rule.
    fn line(&self, line: &[u8]) -> Result<Claims, String>;
}
