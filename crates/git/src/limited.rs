//! A checks runner that runs so many jobs at the same time and no more.

use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::ports::{ChecksJob, ChecksRunner, ChecksSink, HostError};
use tokio::sync::Semaphore;

use crate::LocalChecksRunner;

/// The runner of one host. Workers that only follow other hosts' checks are many; this keeps them
/// from running as many checks here.
#[derive(Clone)]
pub(crate) struct Limited {
    inner: Arc<LocalChecksRunner>,
    slots: Arc<Semaphore>,
}

impl Limited {
    /// At most so many jobs at the same time.
    pub(crate) fn new(inner: Arc<LocalChecksRunner>, concurrency: u32) -> Self {
        let slots = usize::try_from(concurrency).unwrap_or(1).min(Semaphore::MAX_PERMITS);
        Self { inner, slots: Arc::new(Semaphore::new(slots)) }
    }
}

#[async_trait]
impl ChecksRunner for Limited {
    fn reads_the_host(&self) -> bool {
        self.inner.reads_the_host()
    }

    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError> {
        let slot = tokio::select! {
            slot = self.slots.acquire() => slot,
            () = sink.closed() => return Ok(()),
        };
        // The semaphore is never closed; without a slot nothing would ever run.
        let _slot = slot.ok();
        self.inner.run(job, sink).await
    }
}
