//! The sink of a checks runner's reports: they become facts of the queue and entries of the check
//! log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;

use signalbox_domain::ids::{RunId, Sha};
use signalbox_domain::ports::{CheckOutput, ChecksSink, Leased, QueueRef, SinkClosed};
use signalbox_domain::queue::{CheckReport, Effect, Fact};
use signalbox_domain::time::Timestamp;

use super::{QueueContext, QueueService};

/// Receives the reports of one run's checks. [`QueueSink::close`] closes it when the lease is lost;
/// it closes automatically when the run no longer waits for reports.
pub struct QueueSink {
    context: QueueContext,
    queues: Arc<QueueService>,
    queue: QueueRef,
    checked: Option<(RunId, Sha)>,
    /// The checks that this attempt repeats; empty for the first one.
    again: Vec<CheckReport>,
    closed: AtomicBool,
    failed: AtomicBool,
    read: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl QueueSink {
    pub(super) fn new(context: QueueContext, queues: Arc<QueueService>, leased: &Leased) -> Self {
        let checked = match &leased.effect {
            Effect::RunChecks(checks) => Some((checks.run, checks.candidate.sha.clone())),
            Effect::InspectTarget { .. }
            | Effect::InspectDependency { .. }
            | Effect::ComputeTargets { .. }
            | Effect::BuildCandidate(_)
            | Effect::CancelChecks { .. }
            | Effect::FindCauses { .. }
            | Effect::DeleteBranch { .. }
            | Effect::OpenTestPullRequest { .. }
            | Effect::CheckLandings { .. }
            | Effect::Land(_) => None,
        };
        let again = if let Effect::RunChecks(checks) = &leased.effect {
            checks.again.clone()
        } else {
            Vec::new()
        };
        Self {
            again,
            context,
            queues,
            queue: leased.queue,
            checked,
            closed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            read: AtomicBool::new(false),
            wakers: Mutex::new(Vec::new()),
        }
    }

    /// Whether the sink accepts no more reports.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether a report could not be stored, so that the checks must run again.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Sets whether the reports are read from the host.
    pub(super) fn reads_the_host(&self, read: bool) {
        self.read.store(read, Ordering::SeqCst);
    }

    /// Closes the sink.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        for waker in wakers.drain(..) {
            waker.wake();
        }
    }
}

#[async_trait]
impl ChecksSink for QueueSink {
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed> {
        let Some((run, sha)) = self.checked.clone().filter(|_| !self.is_closed()) else {
            return Err(SinkClosed);
        };
        // A report that cannot be stored closes the sink: the lease expires, and the next server
        // that leases the effect runs the checks again.
        let stored = async {
            if !self.queues.awaits_attempt(self.queue, run, &self.again).await? {
                return Ok(false);
            }
            if checks.iter().any(|it| it.conclusion.is_some_and(|it| !it.is_success())) {
                self.queues.reread_target(self.queue).await?;
                // The causes first: a failure without a known cause is final.
                let causes = self.queues.causes(self.queue, run, &checks).await?;
                if !causes.is_empty() {
                    let fact = Fact::CausesFound { run, sha: sha.clone(), causes };
                    self.queues.absorb(self.queue, fact).await?;
                }
            }
            let read = self.read.load(Ordering::SeqCst);
            let fact = Fact::ChecksReported { run, sha, checks, read };
            self.queues.absorb(self.queue, fact).await?;
            self.queues.awaits_attempt(self.queue, run, &self.again).await
        };
        let wanted = stored.await;
        self.failed.fetch_or(wanted.is_err(), Ordering::SeqCst);
        if wanted.unwrap_or(false) {
            Ok(())
        } else {
            self.close();
            Err(SinkClosed)
        }
    }

    async fn output(&self, output: CheckOutput) -> Result<(), SinkClosed> {
        if self.is_closed() {
            return Err(SinkClosed);
        }
        // As for a report: without it, the checks run again.
        self.context.stores.check_log.write(&output).await.map_err(|_| {
            self.failed.store(true, Ordering::SeqCst);
            self.close();
            SinkClosed
        })
    }

    async fn output_so_far(&self, output: CheckOutput, written: Timestamp) -> bool {
        if self.is_closed() {
            return false;
        }
        // The runner tries it again, and the whole output is stored in any case.
        self.context.stores.check_log.replace(&output, written).await.unwrap_or(false)
    }

    async fn closed(&self) {
        std::future::poll_fn(|cx| {
            if self.is_closed() {
                return Poll::Ready(());
            }
            let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            wakers.push(cx.waker().clone());
            drop(wakers);
            if self.is_closed() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
