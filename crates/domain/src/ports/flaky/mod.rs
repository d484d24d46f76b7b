//! Ports of flaky test detection: stores, the blobs of uploads and their reader.

mod blob_store;
mod blob_writer;
mod flaky_draft;
mod flaky_reads;
mod flaky_store;
mod report_reader;
mod test_trend;
mod upload_store;

use std::sync::Arc;

pub use blob_store::{Blob, BlobError, BlobStore};
pub use blob_writer::BlobWriter;
pub use flaky_draft::{FlakyDraft, IntakePart, NewIntake};
pub use flaky_reads::{FlakyReads, MAX_CLUSTERS, Seek, TestList, TestNumbers};
pub use flaky_store::{
    CiRun, FlakyCommit, FlakyRepo, FlakyStore, IncidentChanges, IncidentStep, KnownIncidents,
    KnownTest, ProgressStep, RepoRef, SettingsStep, TestRecord, TestStep,
};
pub use report_reader::{ReadError, ReportFile, ReportReader};
pub use test_trend::{DayCounts, TestTrend};
pub use upload_store::{LeasedUpload, UploadStore};

/// The stores of flaky test detection in one database.
#[derive(Clone)]
pub struct FlakyStores {
    /// Tests, their runs and their settings.
    pub tests: Arc<dyn FlakyStore>,
    /// Lists and numbers of tests.
    pub reads: Arc<dyn FlakyReads>,
    /// The counts of tests by day.
    pub trend: Arc<dyn TestTrend>,
    /// Uploads of test results.
    pub uploads: Arc<dyn UploadStore>,
}
