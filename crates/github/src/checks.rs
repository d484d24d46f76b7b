//! The reports on a commit: check runs and commit statuses, from all pages.

use std::collections::{BTreeMap, BTreeSet};

use quick_cache::sync::Cache;
use signalbox_domain::ids::{BranchName, RepoName, Sha};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::{Check, CheckConclusion, CheckReport, CheckStatus};
use signalbox_domain::time::{Span, Timestamp};

use crate::client::{Refused, part};
use crate::host::GitHubHost;
use crate::reporters::{Current, Expectations, Reporter, ReportersByName};
use crate::wire;

/// How long who has reported on a target is taken to hold before it is read again.
const HOLD_SECONDS: u32 = 60;
/// The most commits and apps that are remembered.
const REMEMBERED: usize = 1_024;
/// The slug of the app that runs workflows.
const ACTIONS: &str = "github-actions";
/// What follows the slug in the login by which an app writes statuses.
const BOT: &str = "[bot]";

/// Who has reported on which commit, and which app has which slug.
pub(crate) struct Reporters {
    on: Cache<(RepoName, String), (Timestamp, ReportersByName)>,
    apps: Cache<String, Option<u64>>,
}

impl Default for Reporters {
    fn default() -> Self {
        Self { on: Cache::new(REMEMBERED), apps: Cache::new(REMEMBERED) }
    }
}

impl Reporters {
    fn keep(&self, repo: &RepoName, sha: &str, current: &[Current], now: Timestamp) {
        let mut by_name = ReportersByName::new();
        for one in current {
            by_name.entry(one.check.name.clone()).or_default().insert(one.by.clone());
        }
        self.on.insert((repo.clone(), sha.to_owned()), (now, by_name));
    }

    fn of(&self, repo: &RepoName, sha: &str, now: Timestamp) -> Option<ReportersByName> {
        let known = self.on.get(&(repo.clone(), sha.to_owned()));
        let hold = Span::seconds(HOLD_SECONDS);
        known.filter(|(read_at, _)| now.since(*read_at) < hold).map(|(_, by_name)| by_name)
    }
}

impl GitHubHost {
    /// One report for each name on a commit that is to land on a target, whose head is `on`.
    pub(crate) async fn reports(
        &self,
        repo: &RepoName,
        sha: &str,
        target: &BranchName,
        on: &Sha,
    ) -> Result<Vec<CheckReport>, HostError> {
        let pins = self.rules(repo, target).await?.pins;
        let known = self.reporters.of(repo, on.as_str(), self.client.clock.now());
        let on_target = if let Some(known) = known {
            known
        } else {
            self.current(repo, on.as_str()).await?;
            let now = self.client.clock.now();
            self.reporters.of(repo, on.as_str(), now).unwrap_or_default()
        };
        let current = self.current(repo, sha).await?;
        Ok(Expectations { pins, on_target }.folded(&current))
    }

    /// The reports on a commit with their reporters, without replaced attempts.
    async fn current(&self, repo: &RepoName, sha: &str) -> Result<Vec<Current>, HostError> {
        let now = self.client.clock.now();
        let rest = format!("/commits/{sha}/check-runs?filter=all");
        let runs: Vec<wire::CheckRun> = self.client.list(repo, &rest, Some("check_runs")).await?;
        let rest = format!("/commits/{sha}/statuses");
        let statuses: Vec<wire::CommitStatus> = self.client.list(repo, &rest, None).await?;
        let mut current = Vec::new();
        for attempts in by_suite(&runs) {
            let newest = self.newest(repo, attempts).await?;
            current.extend(newest.into_iter().map(|run| of_run(run, now)));
        }
        for status in newest_statuses(&statuses) {
            let by = self.creator(repo, status).await?;
            current.push(Current { by, check: of_status(status, now) });
        }
        self.reporters.keep(repo, sha, &current, now);
        Ok(current)
    }

    /// Of the runs of one name in one suite those of the newest attempt. A workflow may have
    /// several jobs of one name: only the host knows which of them were run again.
    async fn newest<'a>(
        &self,
        repo: &RepoName,
        mut runs: Vec<&'a wire::CheckRun>,
    ) -> Result<Vec<&'a wire::CheckRun>, HostError> {
        runs.sort_by_key(|run| run.id);
        let Some(last) = runs.last().copied().filter(|_| runs.len() > 1) else { return Ok(runs) };
        let of_workflow = last.app.as_ref().and_then(|app| app.slug.as_deref()) == Some(ACTIONS);
        let Some(workflow_run) = workflow_run(last).filter(|_| of_workflow) else {
            return Ok(vec![last]);
        };
        let rest = format!("/actions/runs/{workflow_run}/jobs?filter=latest");
        let jobs: Result<Vec<wire::Numbered>, Refused> =
            self.client.list(repo, &rest, Some("jobs")).await;
        match jobs {
            Ok(jobs) => {
                let jobs: BTreeSet<u64> = jobs.into_iter().map(|job| job.id).collect();
                runs.retain(|run| jobs.contains(&run.id) || run.id == last.id);
                Ok(runs)
            }
            // Without the permission to read actions, times distinguish attempts.
            Err(Refused { status: 403 | 404, .. }) => Ok(not_replaced(&runs)),
            Err(refused) => Err(refused.error),
        }
    }

    /// Who has written a status. Apps write under a login that ends in `[bot]`.
    async fn creator(
        &self,
        repo: &RepoName,
        status: &wire::CommitStatus,
    ) -> Result<Reporter, HostError> {
        let Some(creator) = &status.creator else {
            return Ok(Reporter::Account("an unknown account".to_owned()));
        };
        let account = || Reporter::Account(creator.login.clone());
        let slug = creator.login.strip_suffix(BOT);
        let Some(slug) = slug.filter(|_| creator.kind.as_deref() == Some("Bot")) else {
            return Ok(account());
        };
        let id = if let Some(known) = self.reporters.apps.get(slug) {
            known
        } else {
            let found = self.client.get_public(repo, &format!("apps/{}", part(slug))).await;
            let found: Option<wire::AppShort> = match found {
                Ok(app) => Some(app),
                Err(Refused { status: 403 | 404, .. }) => None,
                Err(refused) => return Err(refused.error),
            };
            let id = found.and_then(|app| app.id);
            self.reporters.apps.insert(slug.to_owned(), id);
            id
        };
        Ok(id.map_or_else(account, Reporter::App))
    }
}

/// Check runs by name, app and suite.
fn by_suite(runs: &[wire::CheckRun]) -> impl Iterator<Item = Vec<&wire::CheckRun>> {
    let mut suites = BTreeMap::<_, Vec<&wire::CheckRun>>::new();
    for run in runs {
        let app = run.app.as_ref().and_then(|app| app.id);
        let suite = run.check_suite.as_ref().map(|suite| suite.id);
        suites.entry((&run.name, app, suite)).or_default().push(run);
    }
    suites.into_values()
}

/// The number of the workflow run that a check run is a job of, from its address.
fn workflow_run(run: &wire::CheckRun) -> Option<u64> {
    let url = run.details_url.as_deref().or(run.html_url.as_deref())?;
    let (_, rest) = url.split_once("/actions/runs/")?;
    rest.split('/').next()?.parse().ok()
}

/// Those after whose end none was started: an attempt starts when the one before has ended.
fn not_replaced<'a>(runs: &[&'a wire::CheckRun]) -> Vec<&'a wire::CheckRun> {
    let read = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse);
    let is_replaced = |run: &wire::CheckRun| {
        let ended = read(&run.completed_at);
        runs.iter().any(|other| {
            other.id > run.id
                && ended.zip(read(&other.started_at)).is_some_and(|(end, start)| end <= start)
        })
    };
    runs.iter().copied().filter(|run| !is_replaced(run)).collect()
}

/// The newest status of each context and account; they are listed newest first.
fn newest_statuses(statuses: &[wire::CommitStatus]) -> Vec<&wire::CommitStatus> {
    let mut seen = BTreeSet::new();
    let key = |it: &wire::CommitStatus| {
        (it.context.clone(), it.creator.as_ref().map(|by| by.login.clone()))
    };
    statuses.iter().filter(|it| seen.insert(key(it))).collect()
}

fn time(text: Option<&String>, now: Timestamp) -> Timestamp {
    text.and_then(|text| Timestamp::parse(text)).unwrap_or(now)
}

fn of_run(run: &wire::CheckRun, now: Timestamp) -> Current {
    let completed = run.status.as_deref() == Some("completed");
    let conclusion = run.conclusion.as_deref().filter(|_| completed).map(|word| {
        // A word that we do not know is no success.
        match word {
            // The job never ran.
            "startup_failure" => CheckConclusion::Stale,
            word => CheckConclusion::parse(word).unwrap_or(CheckConclusion::Failure),
        }
    });
    let status = match (completed, run.status.as_deref()) {
        (true, _) if conclusion.is_some() => CheckStatus::Completed,
        (_, Some("in_progress" | "completed")) => CheckStatus::InProgress,
        _ => CheckStatus::Queued,
    };
    let app = run.app.as_ref().and_then(|app| app.id);
    let by = app.map_or_else(|| Reporter::Account("an unknown app".to_owned()), Reporter::App);
    let check = Check {
        name: run.name.clone(),
        status,
        conclusion,
        url: run.html_url.clone().or_else(|| run.details_url.clone()).unwrap_or_default(),
        summary: run.output.as_ref().and_then(|output| output.title.clone()),
        at: time(run.completed_at.as_ref().or(run.started_at.as_ref()), now),
        excused: Vec::new(),
    };
    Current { by, check }
}

fn of_status(status: &wire::CommitStatus, now: Timestamp) -> CheckReport {
    let conclusion = match status.state.as_str() {
        "success" => Some(CheckConclusion::Success),
        "pending" => None,
        _ => Some(CheckConclusion::Failure),
    };
    Check {
        name: status.context.clone(),
        status: if conclusion.is_some() { CheckStatus::Completed } else { CheckStatus::InProgress },
        conclusion,
        url: status.target_url.clone().unwrap_or_default(),
        summary: status.description.clone(),
        at: time(status.updated_at.as_ref(), now),
        excused: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    /// Every check run is in exactly one suite, and the newest run of each suite is kept.
    #[test]
    fn fuzz_reports() {
        let words = ["null", "-1", "1e400", "[", "{", "\"completed\"", "\"id\":", "/actions/runs/"];
        let now = Timestamp::from_unix_seconds(1_767_225_600);
        fuzz("github-checks", &committed("github-reply"), &words, |input| {
            let Ok(reply) = serde_json::from_slice::<Value>(input) else { return };
            let runs: Vec<wire::CheckRun> =
                serde_json::from_value(reply["check_runs"].clone()).unwrap_or_default();
            let count: usize = by_suite(&runs).map(|suite| suite.len()).sum();
            assert_eq!(count, runs.len());
            for suite in by_suite(&runs) {
                let kept = not_replaced(&suite);
                let last = suite.iter().map(|run| run.id).max();
                assert_eq!(kept.iter().map(|run| run.id).max(), last);
            }
            for run in &runs {
                let Check { status, conclusion, .. } = of_run(run, now).check;
                assert_eq!(status == CheckStatus::Completed, conclusion.is_some());
            }
            let statuses: Vec<wire::CommitStatus> =
                serde_json::from_value(reply).unwrap_or_default();
            let newest = newest_statuses(&statuses);
            assert!(newest.len() <= statuses.len() && newest.is_empty() == statuses.is_empty());
            for status in newest {
                let report = of_status(status, now);
                let is_success = report.conclusion == Some(CheckConclusion::Success);
                assert_eq!(is_success, status.state == "success");
            }
        });
    }

    fn run(id: u64, start: &str, end: Option<&str>) -> wire::CheckRun {
        let status = if end.is_some() { "completed" } else { "in_progress" };
        let run = json!({
            "id": id, "name": "test", "status": status, "conclusion": "success",
            "started_at": start, "completed_at": end, "app": {"id": 15368, "slug": ACTIONS},
            "details_url": "https://github.com/acme/calc/actions/runs/77/job/5",
        });
        serde_json::from_value(run).expect("a run")
    }

    #[test]
    fn an_attempt_starts_after_the_one_before_has_ended() {
        let at = |second: u32| format!("2026-01-01T00:00:{second:02}Z");
        let first = run(1, &at(0), Some(&at(10)));
        let beside = run(2, &at(5), Some(&at(12)));
        let again = run(3, &at(13), None);
        let ids = |runs: &[&wire::CheckRun]| {
            not_replaced(runs).iter().map(|run| run.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&[&first, &beside]), [1, 2], "two jobs of one name");
        assert_eq!(ids(&[&first, &beside, &again]), [3], "both were run again");
        assert_eq!(workflow_run(&first), Some(77));
    }

    #[test]
    fn every_conclusion_is_read_and_unknown_ones_are_no_success() {
        let now = Timestamp::from_unix_seconds(0);
        for (status, conclusion, wanted) in [
            ("completed", Some("success"), Some(true)),
            ("completed", Some("skipped"), Some(true)),
            ("completed", Some("failure"), Some(false)),
            ("completed", Some("startup_failure"), Some(false)),
            ("completed", Some("a new word"), Some(false)),
            ("completed", None, None),
            ("waiting", None, None),
        ] {
            let read = json!({"id": 1, "name": "x", "status": status, "conclusion": conclusion});
            let read: wire::CheckRun = serde_json::from_value(read).expect("a run");
            let end = of_run(&read, now).check.conclusion.map(CheckConclusion::is_success);
            assert_eq!(end, wanted, "{status} {conclusion:?}");
        }
    }

    #[test]
    fn of_statuses_the_newest_of_each_account_counts() {
        let status = |context: &str, state: &str, login: Value| json!({"context": context, "state": state, "creator": login});
        let by = |login: &str| json!({"login": login, "type": "User"});
        let listed = json!([
            status("ci", "success", by("eve")),
            status("ci", "failure", by("ci-bot")),
            status("ci", "success", by("ci-bot")),
            status("lint", "pending", Value::Null),
        ]);
        let listed: Vec<wire::CommitStatus> = serde_json::from_value(listed).expect("statuses");
        let newest = newest_statuses(&listed);
        let shown: Vec<&str> = newest.iter().map(|it| it.state.as_str()).collect();
        assert_eq!(shown, ["success", "failure", "pending"]);
    }
}
