//! Check runs, commit statuses, rules, workflow runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::state::{Asked, Reply, State};

impl State {
    /// Everything on a test branch runs at once, and ends as the test has said.
    pub(super) fn run_ci(&mut self, sha: &str) {
        let Some(ci) = &self.ci else { return };
        let files = self.git.must(&["ls-tree", "-r", "--name-only", sha]);
        let files: BTreeSet<String> = files.lines().map(ToOwned::to_owned).collect();
        let ends = ci(&files);
        for (name, conclusion) in ends {
            self.report(sha, name, "completed", Some(conclusion));
        }
    }

    /// A check run is reported; a second one of the same name gets a new id.
    pub(super) fn report(&mut self, sha: &str, name: &str, status: &str, end: Option<&str>) {
        let run = json!({
            "id": self.next_id(), "name": name, "head_sha": sha, "status": status,
            "conclusion": end, "html_url": "https://ci.example/1", "details_url": null,
            "started_at": null, "completed_at": null, "output": {"title": null},
        });
        self.check_runs.entry(sha.to_owned()).or_default().push(run.clone());
        self.tell("check_run", json!({"action": status, "check_run": run}));
    }

    /// checks/list-for-ref
    pub(super) fn list_check_runs(&self, asked: &Asked, sha: &str) -> Reply {
        let runs = self.check_runs.get(sha).cloned().unwrap_or_default();
        let total = runs.len();
        asked.page(runs, |runs| json!({"total_count": total, "check_runs": runs}))
    }

    /// repos/get-combined-status-for-ref
    pub(super) fn combined_status(&self, asked: &Asked, sha: &str) -> Reply {
        let statuses = self.statuses.get(sha).cloned().unwrap_or_default();
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
            "updated_at": "2026-01-01T00:00:00Z",
        });
        let kept = self.statuses.entry(sha.to_owned()).or_default();
        kept.retain(|it| it["context"] != status["context"]);
        kept.push(status.clone());
        self.tell("status", json!({"sha": sha, "context": status["context"]}));
        Reply::new(201, status)
    }

    /// repos/get-branch-rules
    pub(super) fn rules(&self, asked: &Asked, branch: &str) -> Reply {
        let names = self.rulesets.get(branch).cloned().unwrap_or_default();
        let checks: Vec<Value> = names.iter().map(|name| json!({"context": name})).collect();
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
                let checks: Vec<Value> =
                    names.iter().map(|it| json!({"context": it, "app_id": null})).collect();
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
