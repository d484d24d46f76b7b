//! Waits for the reports of the host's CI on candidates. Runs nothing itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{ChecksJob, ChecksRunner, ChecksSink, HostError};
use signalbox_domain::queue::{CheckReport, CheckStatus};
use signalbox_domain::time::Span;
use tokio::sync::Notify;

use crate::host::GitHubHost;

/// The delay after a hint before the host is read: several checks often report together.
const AFTER_HINT: Duration = Duration::from_millis(500);

/// Who waits for reports on which commit.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<BTreeMap<Sha, Arc<Notify>>>);

impl Waiters {
    fn join(&self, sha: &Sha) -> Arc<Notify> {
        let mut waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiters.entry(sha.clone()).or_default().clone()
    }

    fn leave(&self, sha: &Sha) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(sha);
    }

    /// Wakes the tasks that wait for reports on that commit.
    pub(crate) fn hint(&self, sha: &Sha) {
        let waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiter) = waiters.get(sha) {
            // A hint that comes while the host is being asked is kept for the next pause.
            waiter.notify_one();
        }
    }
}

/// Follows the check runs and commit statuses of candidates until all that are required have
/// ended.
pub struct GitHubChecks(Arc<GitHubHost>);

impl GitHubChecks {
    /// Follows them on that host.
    pub const fn new(host: Arc<GitHubHost>) -> Self {
        Self(host)
    }

    async fn follow(
        &self,
        job: &ChecksJob,
        sink: &dyn ChecksSink,
        hinted: &Notify,
    ) -> Result<(), HostError> {
        let sha = job.checks.candidate.sha.as_str();
        let after = self.0.reread_after.to_std();
        let (mut pause, longest) = (after / 10, after / 2);
        let mut told: Vec<CheckReport> = Vec::new();
        loop {
            let (target, on) = (&job.checks.target, &job.checks.config_from);
            let reports = self.0.reports(&job.repository.name, sha, target, on).await?;
            let fresh = news(&told, &reports);
            if !fresh.is_empty() && sink.report(fresh).await.is_err() {
                return Ok(());
            }
            if have_ended(&job.checks.required, &reports) {
                return Ok(());
            }
            told = reports;
            tokio::select! {
                () = hinted.notified() => tokio::time::sleep(AFTER_HINT).await,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(longest),
                () = sink.closed() => return Ok(()),
            }
        }
    }
}

/// The new or changed reports since the last call. Times are ignored, because a check without a
/// start time would otherwise always look changed.
fn news(told: &[CheckReport], reports: &[CheckReport]) -> Vec<CheckReport> {
    let same = |one: &CheckReport, other: &CheckReport| {
        (&one.name, one.status, one.conclusion, &one.url, &one.summary)
            == (&other.name, other.status, other.conclusion, &other.url, &other.summary)
    };
    let is_new = |report: &&CheckReport| !told.iter().any(|it| same(it, report));
    // What replaces another report is later than that one, whatever the host's times are.
    let later = |report: &CheckReport| {
        let before = told.iter().find(|it| it.name == report.name);
        let earliest = before.map_or(report.at, |it| it.at.plus(Span::from_micros(1)));
        CheckReport { at: report.at.max(earliest), ..report.clone() }
    };
    reports.iter().filter(is_new).map(later).collect()
}

fn have_ended(required: &[String], reports: &[CheckReport]) -> bool {
    let ended = |name: &String| {
        reports.iter().any(|it| it.name == *name && it.status == CheckStatus::Completed)
    };
    required.iter().all(ended)
}

#[async_trait]
impl ChecksRunner for GitHubChecks {
    fn reads_the_host(&self) -> bool {
        true
    }

    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError> {
        let sha = &job.checks.candidate.sha;
        let hinted = self.0.waiters.join(sha);
        let done = self.follow(job, sink, &hinted).await;
        self.0.waiters.leave(sha);
        self.0.noted(&job.repository.name, "reading checks", done)
    }
}
