//! Check runs, commit statuses, rules, workflow runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use signalbox_domain::time::{Span, Timestamp};

use super::routes::LOGS;
use super::state::{Asked, Reply, State};
use crate::double::{RawAnswer, Request};

/// The app that runs workflows: its id and its slug.
pub(super) const ACTIONS: (u64, &str) = (15_368, "github-actions");

/// A check run as an app reports it.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// The id of the app.
    pub app: u64,
    /// The id of the suite; check runs of one workflow run share a suite.
    pub suite: u64,
    /// Its name.
    pub name: &'a str,
    /// Its status.
    pub status: &'a str,
    /// Its conclusion.
    pub conclusion: Option<&'a str>,
}

impl<'a> Reported<'a> {
    /// A completed check run of a workflow, in suite 1.
    pub const fn ended(name: &'a str, conclusion: &'a str) -> Self {
        let (status, conclusion) = ("completed", Some(conclusion));
        Self { app: ACTIONS.0, suite: 1, name, status, conclusion }
    }

    /// A check run of a workflow in progress, in suite 1.
    pub const fn begun(name: &'a str) -> Self {
        Self { app: ACTIONS.0, suite: 1, name, status: "in_progress", conclusion: None }
    }
}

impl State {
    /// Runs CI on a test branch: all check runs complete immediately, as the test has set.
    pub(super) fn run_ci(&mut self, sha: &str) {
        let suite = self.next_id();
        for (name, conclusion) in self.ends_of_ci(sha, 1) {
            let reported = Reported { suite, ..Reported::ended(name, conclusion) };
            self.report(sha, &reported);
        }
    }

    /// What CI says about a commit in an attempt.
    fn ends_of_ci(&self, sha: &str, attempt: u64) -> Vec<(&'static str, &'static str)> {
        let Some(ci) = &self.ci else { return Vec::new() };
        let files = self.git.must(&["ls-tree", "-r", "--name-only", sha]);
        let files: BTreeSet<String> = files.lines().map(ToOwned::to_owned).collect();
        ci(&files, attempt)
    }

    /// The check runs of the newest attempt of a workflow run, whose id is that of its suite, and
    /// its commit.
    fn of_workflow(&self, id: u64) -> Option<(String, Vec<Value>)> {
        let of_suite = |run: &&Value| {
            run["check_suite"]["id"].as_u64() == Some(id)
                && run["app"]["id"].as_u64() == Some(ACTIONS.0)
        };
        self.check_runs.iter().find_map(|(sha, runs)| {
            let newest: Vec<Value> =
                Self::of_newest_attempts(runs).filter(of_suite).cloned().collect();
            (!newest.is_empty()).then(|| (sha.clone(), newest))
        })
    }

    /// actions/re-run-workflow-failed-jobs: the failed and the cancelled jobs, and the jobs that were
    /// skipped because they depend on those, get check runs of another attempt, which are queued
    /// unless the test has set what CI does.
    pub(super) fn rerun_failed_jobs(&mut self, id: u64) -> Reply {
        let Some((sha, runs)) = self.of_workflow(id) else { return Reply::not_found() };
        if runs.iter().any(|run| run["status"] != "completed") {
            return Reply::error(403, "This workflow is already running");
        }
        let is_good =
            |run: &&Value| matches!(run["conclusion"].as_str(), Some("success" | "neutral"));
        let failed: Vec<Value> = runs.iter().filter(|run| !is_good(run)).cloned().collect();
        let attempt = self.attempts.get(&id).copied().unwrap_or(1) + 1;
        self.attempts.insert(id, attempt);
        let ends = self.ends_of_ci(&sha, attempt);
        for run in failed {
            let name = run["name"].as_str().unwrap_or_default();
            let end = ends.iter().find(|(of, _)| *of == name);
            let reported = match end {
                Some((_, conclusion)) => Reported::ended(name, conclusion),
                None => Reported { status: "queued", ..Reported::begun(name) },
            };
            self.report(&sha, &Reported { suite: id, ..reported });
        }
        Reply::new(201, json!({}))
    }

    fn shown_workflow(id: u64, sha: &str, jobs: &[Value]) -> Value {
        let is_done = jobs.iter().all(|job| job["status"] == "completed");
        let status = if is_done { "completed" } else { "in_progress" };
        json!({"id": id, "status": status, "head_sha": sha})
    }

    /// actions/list-workflow-runs-for-repo of a commit.
    pub(super) fn list_workflow_runs(&self, asked: &Asked) -> Reply {
        let sha = asked.query.get("head_sha").map(String::as_str).unwrap_or_default();
        let runs = self.check_runs.get(sha).map_or(&[][..], Vec::as_slice);
        let suites: BTreeSet<u64> =
            runs.iter().filter_map(|run| run["check_suite"]["id"].as_u64()).collect();
        let found = suites.into_iter().filter_map(|id| {
            let (_, jobs) = self.of_workflow(id)?;
            Some(Self::shown_workflow(id, sha, &jobs))
        });
        let found: Vec<Value> = found.collect();
        let total = found.len();
        asked.page(found, |runs| json!({"total_count": total, "workflow_runs": runs}))
    }

    /// actions/cancel-workflow-run
    pub(super) fn cancel_workflow_run(&mut self, id: u64) -> Reply {
        let Some((sha, jobs)) = self.of_workflow(id) else { return Reply::not_found() };
        let open: Vec<Value> =
            jobs.into_iter().filter(|job| job["status"] != "completed").collect();
        if open.is_empty() {
            return Reply::error(409, "Cannot cancel a workflow run that is completed.");
        }
        for job in open {
            for run in self.check_runs.entry(sha.clone()).or_default() {
                if run["id"] == job["id"] {
                    run["status"] = json!("completed");
                    run["conclusion"] = json!("cancelled");
                    run["completed_at"] = run["started_at"].clone();
                }
            }
        }
        Reply::new(202, json!({}))
    }

    /// Reports a check run; a second one of the same name gets a new id.
    pub(super) fn report(&mut self, sha: &str, reported: &Reported<'_>) -> u64 {
        let id = self.next_id();
        let (app, suite) = (reported.app, reported.suite);
        let is_workflow = app == ACTIONS.0;
        let slug = if is_workflow { ACTIONS.1.to_owned() } else { format!("app-{app}") };
        let now: Timestamp = time::OffsetDateTime::now_utc().into();
        let is_completed = reported.status == "completed";
        // What has ended took a minute.
        let started = if is_completed { now.minus(Span::minutes(1)) } else { now };
        let details = format!("https://github.example/actions/runs/{suite}/job/{id}");
        let run = json!({
            "id": id, "name": reported.name, "head_sha": sha, "status": reported.status,
            "conclusion": reported.conclusion,
            "html_url": if is_workflow {
                details.clone()
            } else {
                format!("https://github.example/runs/{id}")
            },
            "details_url": is_workflow.then_some(details),
            "started_at": started.to_string(),
            "completed_at": is_completed.then(|| now.to_string()),
            "output": {"title": null},
            "app": {"id": app, "slug": slug}, "check_suite": {"id": suite},
            "attempt": self.attempts.get(&suite).copied().unwrap_or(1),
        });
        let runs = self.check_runs.entry(sha.to_owned()).or_default();
        // The job that was queued for another attempt is this one.
        runs.retain(|it| {
            let is_same = |key: &str| it[key] == run[key];
            it["status"] != "queued" || !["name", "check_suite", "attempt"].into_iter().all(is_same)
        });
        runs.push(run.clone());
        self.tell("check_run", json!({"action": reported.status, "check_run": run}));
        id
    }

    /// The check runs of the latest attempt of each suite.
    pub(super) fn of_newest_attempts(runs: &[Value]) -> impl Iterator<Item = &Value> {
        let is_same = |one: &Value, other: &Value| {
            one["name"] == other["name"] && one["check_suite"] == other["check_suite"]
        };
        runs.iter().filter(move |run| {
            let later = |other: &&Value| other["attempt"].as_u64() > run["attempt"].as_u64();
            !runs.iter().filter(later).any(|other| is_same(run, other))
        })
    }

    /// actions/list-jobs-for-workflow-run; a workflow run has the id of its suite.
    pub(super) fn jobs(&self, asked: &Asked, id: &str) -> Reply {
        let runs: Vec<Value> = self.check_runs.values().flatten().cloned().collect();
        let suite = id.parse::<u64>().ok();
        let of_suite = |run: &&Value| run["check_suite"]["id"].as_u64() == suite;
        let jobs = Self::of_newest_attempts(&runs).filter(of_suite);
        let jobs: Vec<Value> = jobs.map(|run| json!({"id": run["id"]})).collect();
        let total = jobs.len();
        asked.page(jobs, |jobs| json!({"total_count": total, "jobs": jobs}))
    }

    /// actions/download-job-logs-for-workflow-run: a reference to another host.
    pub(super) fn job_log(&self, id: u64) -> Reply {
        if self.log_of(id).is_none() {
            return Reply::not_found();
        }
        let stored = self.api.replace("127.0.0.1", "localhost");
        Reply::new(302, json!({"location": format!("{stored}{LOGS}{id}")}))
    }

    fn log_of(&self, id: u64) -> Option<&String> {
        let run = self.check_runs.values().flatten().find(|run| run["id"].as_u64() == Some(id))?;
        self.logs.get(run["name"].as_str()?)
    }

    /// The store of logs refuses requests with credentials that are not its own, as the real one does.
    pub(super) fn stored_log(&self, id: &str, request: &Request) -> RawAnswer {
        let found = id.parse().ok().and_then(|id| self.log_of(id));
        let (status, body) = match found {
            _ if !request.header("authorization").is_empty() => (400, String::new()),
            Some(log) => (200, log.clone()),
            None => (404, String::new()),
        };
        RawAnswer { status, headers: Vec::new(), body: body.into_bytes() }
    }

    /// apps/get-by-slug
    pub(super) fn app_of_slug(&self, slug: &str) -> Reply {
        let own = self.app.as_ref().map(|(id, _)| *id).filter(|_| slug == "signalbox-test");
        let id = own.or_else(|| (slug == ACTIONS.1).then_some(ACTIONS.0));
        let id = id.or_else(|| slug.strip_prefix("app-")?.parse().ok());
        id.map_or_else(Reply::not_found, |id| Reply::new(200, json!({"id": id, "slug": slug})))
    }

    /// checks/list-for-ref
    pub(super) fn list_check_runs(&self, asked: &Asked, sha: &str) -> Reply {
        let runs = self.check_runs.get(sha).map_or(&[][..], Vec::as_slice);
        let runs: Vec<Value> = match asked.query.get("filter").map(String::as_str) {
            Some("all") => runs.to_vec(),
            Some(_) | None => Self::of_newest_attempts(runs).cloned().collect(),
        };
        let total = runs.len();
        asked.page(runs, |runs| json!({"total_count": total, "check_runs": runs}))
    }

    /// repos/list-commit-statuses-for-ref: newest first.
    pub(super) fn list_statuses(&self, asked: &Asked, sha: &str) -> Reply {
        let statuses = self.statuses.get(sha).into_iter().flatten().rev().cloned();
        asked.page(statuses.collect(), |it| it)
    }

    /// The latest status of each context.
    pub(super) fn newest_statuses(&self, sha: &str) -> Vec<Value> {
        let mut kept: Vec<Value> = Vec::new();
        for status in self.statuses.get(sha).into_iter().flatten() {
            kept.retain(|it| it["context"] != status["context"]);
            kept.push(status.clone());
        }
        kept
    }

    /// repos/get-combined-status-for-ref
    pub(super) fn combined_status(&self, asked: &Asked, sha: &str) -> Reply {
        let statuses = self.newest_statuses(sha);
        let total = statuses.len();
        asked.page(statuses, |statuses| {
            json!({"state": "pending", "sha": sha, "total_count": total, "statuses": statuses})
        })
    }

    /// repos/create-commit-status
    pub(super) fn create_status(&mut self, asked: &Asked, sha: &str) -> Reply {
        if self.git.resolve(&format!("{sha}^{{commit}}")).is_none() {
            let words = format!("No commit found for SHA: {sha}");
            return Reply::error(422, &words);
        }
        let status = json!({
            "context": asked.text("context"), "state": asked.text("state"),
            "description": asked.body["description"], "target_url": asked.body["target_url"],
            "updated_at": "2026-01-01T00:00:00Z", "id": self.next_id(),
            "creator": {
                "login": asked.login, "id": 9,
                "type": if asked.login.ends_with("[bot]") { "Bot" } else { "User" },
            },
        });
        self.statuses.entry(sha.to_owned()).or_default().push(status.clone());
        self.tell("status", json!({"sha": sha, "context": status["context"]}));
        Reply::new(201, status)
    }

    /// repos/get-branch-rules
    pub(super) fn rules(&self, asked: &Asked, branch: &str) -> Reply {
        let names = self.rulesets.get(branch).cloned().unwrap_or_default();
        let check = |(name, app): &(String, Option<u64>)| match app {
            Some(app) => json!({"context": name, "integration_id": app}),
            None => json!({"context": name}),
        };
        let checks: Vec<Value> = names.iter().map(check).collect();
        let mut rules = vec![json!({"type": "deletion", "ruleset_id": 1})];
        if !checks.is_empty() {
            rules.push(json!({
                "type": "required_status_checks", "ruleset_id": 1,
                "parameters": {"required_status_checks": checks,
                    "strict_required_status_checks_policy": false},
            }));
        }
        asked.page(rules, |it| it)
    }

    /// repos/get-status-checks-protection
    pub(super) fn classic_checks(&self, branch: &str) -> Reply {
        match self.classic.get(branch) {
            Some(names) => {
                let checks =
                    names.iter().map(|(name, app)| json!({"context": name, "app_id": app}));
                let checks: Vec<Value> = checks.collect();
                let names: Vec<&String> = names.iter().map(|(name, _)| name).collect();
                Reply::new(200, json!({"strict": false, "contexts": names, "checks": checks}))
            }
            None => Reply::error(404, "Branch not protected"),
        }
    }

    /// actions/get-workflow-run
    pub(super) fn workflow_run(&self, id: &str) -> Reply {
        let Ok(number) = id.parse::<u64>() else { return Reply::not_found() };
        if let Some(run) = self.workflow_runs.get(&number) {
            return Reply::new(200, run.clone());
        }
        let Some((sha, jobs)) = self.of_workflow(number) else { return Reply::not_found() };
        Reply::new(200, Self::shown_workflow(number, &sha, &jobs))
    }
}
