//! Waits for the reports of the host's CI on candidates. Runs nothing itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, Sha};
use signalbox_domain::ports::{
    CheckOutput, ChecksJob, ChecksRunner, ChecksSink, HostError, Repository, SinkClosed,
};
use signalbox_domain::queue::{CheckConclusion, CheckReport, CheckStatus};
use signalbox_domain::time::Span;
use tokio::sync::Notify;

use crate::host::GitHubHost;
use crate::rerun::{Rerun, is_stale};

/// The delay after a hint before the host is read: several checks often report together.
const AFTER_HINT: Duration = Duration::from_millis(500);

/// How long the reports of failed checks wait for their logs, all together.
const LOGS_WITHIN: Duration = Duration::from_secs(10);

/// Who waits for reports on which commit.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<BTreeMap<Sha, (usize, Arc<Notify>)>>);

impl Waiters {
    fn join(&self, sha: &Sha) -> Arc<Notify> {
        let mut waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, waiter) = waiters.entry(sha.clone()).or_default();
        *count += 1;
        waiter.clone()
    }

    fn leave(&self, sha: &Sha) {
        let mut waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = waiters.get_mut(sha) {
            *count -= 1;
            if *count == 0 {
                waiters.remove(sha);
            }
        }
    }

    /// Wakes the tasks that wait for reports on that commit.
    pub(crate) fn hint(&self, sha: &Sha) {
        let waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, waiter)) = waiters.get(sha) {
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
        let (repo, again) = (&job.repository.name, &job.checks.again);
        let mut is_requested = again.is_empty();
        loop {
            let (target, on) = (&job.checks.target, &job.checks.config_from);
            let mut reports = self.0.reports(repo, sha, target, on).await?;
            let stale: Vec<CheckReport> =
                reports.extract_if(.., |report| is_stale(report, again)).collect();
            // Another server may have requested it before it stopped: what has a newer report runs.
            if !is_requested
                && !stale.is_empty()
                && self.0.workflows_have_ended(repo, again).await?
            {
                match self.0.rerun(repo, &stale).await? {
                    Rerun::Requested => is_requested = true,
                    Rerun::Busy => {}
                    Rerun::Refused(words) => {
                        let ended =
                            stale.into_iter().map(|check| not_repeated(check, again, &words));
                        // A closed sink wants no report.
                        let _closed = sink.report(ended.collect()).await;
                        return Ok(());
                    }
                }
            }
            if !again.is_empty() {
                let repeated = |name: &String| again.iter().any(|it| it.name == *name);
                let names: Vec<String> =
                    job.checks.required.iter().filter(|it| repeated(it)).cloned().collect();
                let ended = have_ended(&names, &reports)
                    && self.0.workflows_have_ended(repo, again).await?;
                if ended {
                    // Jobs that depend on the repeated ones have their results now.
                    reports = self.0.reports(repo, sha, target, on).await?;
                    reports.retain(|report| !is_stale(report, again));
                } else {
                    reports.retain(|it| it.conclusion.is_none() && repeated(&it.name));
                }
            }
            let fresh = news(&told, &reports);
            // A log may show that a machine failed, so it is stored before the failure is reported.
            if self.keep_logs(job, &fresh, sink).await.is_err() {
                return Ok(());
            }
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

impl GitHubChecks {
    /// Stores what failed jobs of workflows printed, of the required checks.
    async fn keep_logs(
        &self,
        job: &ChecksJob,
        reports: &[CheckReport],
        sink: &dyn ChecksSink,
    ) -> Result<(), SinkClosed> {
        let until = tokio::time::Instant::now() + LOGS_WITHIN;
        let is_unsuccessful =
            |it: &&CheckReport| it.conclusion.is_some_and(|conclusion| !conclusion.is_success());
        let required = reports.iter().filter(|it| job.checks.required.contains(&it.name));
        for report in required.filter(is_unsuccessful) {
            let log = tokio::select! {
                log = self.log_of(job, report) => log,
                () = tokio::time::sleep_until(until) => None,
                () = sink.closed() => None,
            };
            let text = match log {
                Some(text) => text,
                None if job.checks.again.is_empty() => continue,
                // In place of the log of an earlier attempt.
                None => String::new(),
            };
            let output = CheckOutput {
                org: job.repository.org,
                run: job.checks.run,
                check: report.name.clone(),
                text,
                at: self.0.client.clock.now(),
            };
            sink.output(output).await?;
        }
        Ok(())
    }

    async fn log_of(&self, job: &ChecksJob, report: &CheckReport) -> Option<String> {
        // Others did not run completely.
        let has_run = [CheckConclusion::Failure, CheckConclusion::TimedOut];
        if !has_run.contains(&report.conclusion?) {
            return None;
        }
        self.0.job_log(&job.repository.name, report).await
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

/// The report of a check that the host does not run again: it stays as it was.
fn not_repeated(check: CheckReport, again: &[CheckReport], words: &str) -> CheckReport {
    let summary = match check.summary {
        Some(summary) => format!("{summary}; it could not be run again: {words}"),
        None => format!("it could not be run again: {words}"),
    };
    let conclusion = Some(CheckConclusion::Failure);
    let before = again.iter().filter(|it| it.name == check.name).map(|it| it.at);
    let at = before.chain([check.at]).max().unwrap_or(check.at).plus(Span::from_micros(1));
    CheckReport { summary: Some(summary), conclusion, at, ..check }
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

    async fn cancel(
        &self,
        repository: &Repository,
        sha: &Sha,
        branch: &BranchName,
    ) -> Result<(), HostError> {
        let done = self.0.cancel_workflows(&repository.name, sha, branch).await;
        self.0.noted(&repository.name, "cancelling workflow runs", done)
    }

    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError> {
        let sha = &job.checks.candidate.sha;
        let hinted = self.0.waiters.join(sha);
        let done = self.follow(job, sink, &hinted).await;
        self.0.waiters.leave(sha);
        self.0.noted(&job.repository.name, "reading checks", done)
    }
}
