//! Reads reports on threads of their own.

use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::flaky::UploadSource;
use signalbox_domain::ports::{ReadError, ReportFile, ReportReader};
use signalbox_domain::upload::{Claims, FoundReport};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// A reader that reads on a thread of its own, so that parsing delays no other task.
pub struct BlockingReader(Arc<dyn ReportReader>);

impl BlockingReader {
    /// A reader that reads with this one.
    pub fn new(reader: impl ReportReader + 'static) -> Self {
        Self(Arc::new(reader))
    }
}

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
