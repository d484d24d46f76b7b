//! What was reported on a commit: check runs and commit statuses, from all pages.

use std::collections::BTreeMap;

use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::{Check, CheckConclusion, CheckReport, CheckStatus};
use signalbox_domain::time::Timestamp;

use crate::host::GitHubHost;
use crate::wire;

impl GitHubHost {
    /// The newest report of every name on a commit. A check run and a commit status of one name
    /// count together, and the worse one is told, as the host does.
    pub(crate) async fn reports(
        &self,
        repo: &RepoName,
        sha: &str,
    ) -> Result<Vec<CheckReport>, HostError> {
        let rest = format!("/commits/{sha}/check-runs?filter=latest");
        let runs: Vec<wire::CheckRun> = self.client.list(repo, &rest, Some("check_runs")).await?;
        let rest = format!("/commits/{sha}/status");
        let statuses: Vec<wire::CommitStatus> =
            self.client.list(repo, &rest, Some("statuses")).await?;
        Ok(merged(&runs, &statuses, self.client.clock.now()))
    }
}

fn merged(
    runs: &[wire::CheckRun],
    statuses: &[wire::CommitStatus],
    now: Timestamp,
) -> Vec<CheckReport> {
    // Of several runs of one name the newest counts: a run that was started again replaces the
    // first, whether or not the host has filtered it out.
    let mut newest: BTreeMap<&str, &wire::CheckRun> = BTreeMap::new();
    for run in runs {
        let kept = newest.entry(&run.name).or_insert(run);
        if run.id > kept.id {
            *kept = run;
        }
    }
    let mut reports: BTreeMap<String, CheckReport> =
        newest.into_iter().map(|(name, run)| (name.to_owned(), of_run(run, now))).collect();
    for status in statuses {
        let report = of_status(status, now);
        let better = reports.get(&status.context).is_some_and(|other| rank(other) >= rank(&report));
        if !better {
            reports.insert(status.context.clone(), report);
        }
    }
    reports.into_values().collect()
}

/// How much a report stands in the way: success least, failure most.
fn rank(report: &CheckReport) -> u8 {
    match (report.status, report.conclusion) {
        (CheckStatus::Completed, Some(conclusion)) if conclusion.is_success() => 0,
        (CheckStatus::Queued | CheckStatus::InProgress, _) | (CheckStatus::Completed, None) => 1,
        (CheckStatus::Completed, Some(_)) => 2,
    }
}

fn time(text: Option<&String>, now: Timestamp) -> Timestamp {
    text.and_then(|text| Timestamp::parse(text)).unwrap_or(now)
}

fn of_run(run: &wire::CheckRun, now: Timestamp) -> CheckReport {
    let completed = run.status.as_deref() == Some("completed");
    let conclusion = run.conclusion.as_deref().filter(|_| completed).map(|word| {
        // A word that we do not know is no success.
        match word {
            "startup_failure" => CheckConclusion::Failure,
            word => CheckConclusion::parse(word).unwrap_or(CheckConclusion::Failure),
        }
    });
    let status = match (completed, run.status.as_deref()) {
        (true, _) if conclusion.is_some() => CheckStatus::Completed,
        (_, Some("in_progress" | "completed")) => CheckStatus::InProgress,
        _ => CheckStatus::Queued,
    };
    Check {
        name: run.name.clone(),
        status,
        conclusion,
        url: run.html_url.clone().or_else(|| run.details_url.clone()).unwrap_or_default(),
        summary: run.output.as_ref().and_then(|output| output.title.clone()),
        at: time(run.completed_at.as_ref().or(run.started_at.as_ref()), now),
    }
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
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(runs: serde_json::Value, statuses: serde_json::Value) -> Vec<(String, Option<bool>)> {
        let runs: Vec<wire::CheckRun> = serde_json::from_value(runs).expect("runs");
        let statuses: Vec<wire::CommitStatus> = serde_json::from_value(statuses).expect("statuses");
        let now = Timestamp::from_unix_seconds(0);
        let shown = |it: CheckReport| (it.name, it.conclusion.map(CheckConclusion::is_success));
        merged(&runs, &statuses, now).into_iter().map(shown).collect()
    }

    #[test]
    fn the_newest_run_counts_and_the_worse_of_two_kinds() {
        let run = |id: u64, name: &str, status: &str, conclusion: Option<&str>| json!({"id": id, "name": name, "status": status, "conclusion": conclusion});
        let runs = json!([
            run(1, "test", "completed", Some("failure")),
            run(3, "test", "completed", Some("success")),
            run(2, "lint", "completed", Some("success")),
            run(4, "odd", "completed", Some("a new word")),
            run(5, "wait", "waiting", None),
            run(6, "skip", "completed", Some("skipped")),
            run(7, "half", "completed", None),
        ]);
        let statuses = json!([
            {"context": "lint", "state": "error"},
            {"context": "ci", "state": "pending"},
            {"context": "test", "state": "success"},
        ]);
        let wanted = [
            ("ci", None),
            ("half", None),
            ("lint", Some(false)),
            ("odd", Some(false)),
            ("skip", Some(true)),
            ("test", Some(true)),
            ("wait", None),
        ];
        let wanted: Vec<_> = wanted.into_iter().map(|(n, it)| (n.to_owned(), it)).collect();
        assert_eq!(read(runs, statuses), wanted);
    }
}
