//! Check runs, commit statuses, rules, workflow runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::state::{Asked, Reply, State};

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
        let Some(ci) = &self.ci else { return };
        let files = self.git.must(&["ls-tree", "-r", "--name-only", sha]);
        let files: BTreeSet<String> = files.lines().map(ToOwned::to_owned).collect();
        let ends = ci(&files);
        let suite = self.next_id();
        for (name, conclusion) in ends {
            let reported = Reported { suite, ..Reported::ended(name, conclusion) };
            self.report(sha, &reported);
        }
    }

    /// Reports a check run; a second one of the same name gets a new id.
    pub(super) fn report(&mut self, sha: &str, reported: &Reported<'_>) -> u64 {
        let id = self.next_id();
        let (app, suite) = (reported.app, reported.suite);
        let is_workflow = app == ACTIONS.0;
        let slug = if is_workflow { ACTIONS.1.to_owned() } else { format!("app-{app}") };
        let details = format!("https://github.example/actions/runs/{suite}/job/{id}");
        let run = json!({
            "id": id, "name": reported.name, "head_sha": sha, "status": reported.status,
            "conclusion": reported.conclusion, "html_url": "https://ci.example/1",
            "details_url": is_workflow.then_some(details),
            "started_at": null, "completed_at": null, "output": {"title": null},
            "app": {"id": app, "slug": slug}, "check_suite": {"id": suite},
            "attempt": self.attempts.get(&suite).copied().unwrap_or(1),
        });
        self.check_runs.entry(sha.to_owned()).or_default().push(run.clone());
        self.tell("check_run", json!({"action": reported.status, "check_run": run}));
        id
    }

    /// The check runs of the latest attempt of each suite.
    fn of_newest_attempts(runs: &[Value]) -> impl Iterator<Item = &Value> {
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
        let run = id.parse().ok().and_then(|id: u64| self.workflow_runs.get(&id));
        run.map_or_else(Reply::not_found, |run| Reply::new(200, run.clone()))
    }
}
