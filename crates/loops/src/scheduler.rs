//! Runs periodic jobs: shared jobs under a lease, jobs of this machine without one.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use signalbox_domain::ports::{LeasedJob, Observed, Observer};
use signalbox_domain::time::Span;
use signalbox_services::{Error, JobService};
use signalbox_terminal::chain;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{Backoff, FALLBACK, RETRY};

/// The function of a job.
type Run<A> = Arc<dyn Fn(Arc<A>) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

/// A periodic job of a server whose parts are in `A`.
pub struct Job<A> {
    /// Its name, and its key in the database.
    pub kind: &'static str,
    /// The pause between two runs.
    pub period: Duration,
    /// What it does.
    pub run: Run<A>,
}

impl<A> Clone for Job<A> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, period: self.period, run: self.run.clone() }
    }
}

impl<A> Job<A> {
    /// A job with its name, the pause between two runs, and what it does.
    pub fn new<R>(
        kind: &'static str,
        period: Duration,
        run: impl Fn(Arc<A>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        Self { kind, period, run: Arc::new(move |app| run(app).boxed()) }
    }

    fn span(&self) -> Span {
        Span::from_micros(i64::try_from(self.period.as_micros()).unwrap_or(i64::MAX))
    }
}

/// What the scheduler needs besides the jobs.
#[derive(Clone)]
pub struct Leases {
    /// Leases jobs from the database.
    pub service: Arc<JobService>,
    /// Counts panics of jobs.
    pub observer: Arc<dyn Observer>,
}

/// Leases jobs that are due and runs each in a task of its own, until the server stops. The bell
/// rings when a job is due.
pub async fn schedule<A: Send + Sync + 'static>(
    app: Arc<A>,
    keeper: Leases,
    jobs: Arc<[Job<A>]>,
    mut bell: watch::Receiver<()>,
    mut stopped: watch::Receiver<bool>,
) {
    let kinds: Vec<&str> = jobs.iter().map(|job| job.kind).collect();
    let (mut running, mut backoff) = (JoinSet::new(), Backoff::new(RETRY));
    let mut declared = false;
    while !*stopped.borrow() {
        let due = async {
            if !declared {
                let all: Vec<(&str, Span)> =
                    jobs.iter().map(|job| (job.kind, job.span())).collect();
                keeper.service.declare(&all).await?;
            }
            keeper.service.lease(&kinds).await
        };
        let pause = match due.await {
            Ok(leased) => {
                declared = true;
                backoff.succeeded();
                for leased in leased {
                    if let Some(job) = jobs.iter().find(|job| job.kind == leased.token.kind) {
                        running.spawn(run(app.clone(), keeper.clone(), job.clone(), leased));
                    }
                }
                FALLBACK
            }
            Err(error) => {
                backoff.failed();
                tracing::warn!(error = %chain("jobs", &error), "could not lease jobs");
                backoff.pause()
            }
        };
        let fallback = tokio::time::sleep(pause);
        tokio::pin!(fallback);
        loop {
            tokio::select! {
                // A job that ends makes no other job due.
                Some(_) = running.join_next(), if !running.is_empty() => {}
                Ok(()) = bell.changed(), if !backoff.is_failing() => break,
                () = &mut fallback => break,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// Runs a job and renews its lease. A lost lease stops it: another server runs it then.
async fn run<A>(app: Arc<A>, keeper: Leases, job: Job<A>, leased: LeasedJob) {
    let kind = job.kind;
    let heartbeat = async {
        loop {
            tokio::time::sleep(JobService::renewal()).await;
            match keeper.service.renew(&leased).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(error = %chain(kind, &error), "could not renew a lease");
                }
            }
        }
    };
    let work = AssertUnwindSafe((job.run)(app)).catch_unwind();
    let failed = tokio::select! {
        done = work => match done {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(chain(kind, &error)),
            Err(_) => {
                keeper.observer.observe(&Observed::Panicked { what: kind });
                Some(format!("{kind}: panicked"))
            }
        },
        () = heartbeat => {
            tracing::warn!(job = kind, "the lease on a job was lost");
            return;
        }
    };
    if let Some(error) = &failed {
        tracing::warn!(error, "a background job failed; it is retried");
    }
    if let Err(error) = keeper.service.finish(&leased, job.span(), failed.as_deref()).await {
        tracing::warn!(error = %chain(kind, &error), "could not release the lease of a job; it expires");
    }
}
