//! The small adapters around results of tests.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use signalbox_domain::flaky::{Excuse, UploadSource};
use signalbox_domain::ports::{
    CheckReports, ChecksJob, LeftReports, ReadError, ReportFile, ReportReader,
};
use signalbox_domain::upload::{Claims, FoundReport};
use signalbox_services::UploadService;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// A reader that works on a thread of its own.
pub(crate) struct BlockingReader(pub(crate) Arc<dyn ReportReader>);

#[async_trait]
impl ReportReader for BlockingReader {
    async fn read(
        &self,
        source: UploadSource,
        files: Vec<ReportFile>,
        most_runs: usize,
    ) -> Result<FoundReport, ReadError> {
        let (reader, runtime) = (self.0.clone(), Handle::current());
        let read = spawn_blocking(move || runtime.block_on(reader.read(source, files, most_runs)));
        read.await.map_err(|error| ReadError::Unavailable(error.to_string()))?
    }

    fn line(&self, line: &[u8]) -> Result<Claims, String> {
        self.0.line(line)
    }
}

/// The receiver of check reports, known only after the hosts are created.
#[derive(Default)]
pub(crate) struct DeferredReports(OnceLock<Weak<UploadService>>);

impl DeferredReports {
    /// Sets the receiver.
    pub(crate) fn go_to(&self, uploads: &Arc<UploadService>) {
        self.0.get_or_init(|| Arc::downgrade(uploads));
    }
}

#[async_trait]
impl CheckReports for DeferredReports {
    async fn collected(
        &self,
        job: &ChecksJob,
        check: &str,
        left: LeftReports,
    ) -> Result<Option<Excuse>, String> {
        match self.0.get().and_then(Weak::upgrade) {
            Some(uploads) => uploads.collected(job, check, left).await,
            None => Err("the server is starting or stopping".into()),
        }
    }
}
