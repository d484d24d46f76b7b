//! Running failed checks again, and cancelling workflow runs that test what is no longer wanted.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use signalbox_domain::ids::{BranchName, RepoName, Sha};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::CheckReport;

use crate::client::{Refused, part};
use crate::host::GitHubHost;
use crate::wire;

/// The result of a request to run checks again.
pub(crate) enum Rerun {
    /// They run again.
    Requested,
    /// Other jobs of their workflow run still run; GitHub accepts the request when they have ended.
    Busy,
    /// GitHub does not run them again, and why.
    Refused(String),
}

/// What runs a check.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A job of this workflow run.
    Workflow(u64),
    /// This check run of another app.
    CheckRun(u64),
}

/// Where a check runs, from its address; `None` for a commit status, which only its author can
/// repeat.
fn place(url: &str) -> Option<Place> {
    let number = |text: &str| text.split(['/', '?', '#']).next()?.parse::<u64>().ok();
    if let Some((_, rest)) = url.split_once("/actions/runs/") {
        return number(rest).map(Place::Workflow);
    }
    url.split_once("/runs/").and_then(|(_, rest)| number(rest)).map(Place::CheckRun)
}

/// Whether a report is one of a check that must run again, from before.
pub(crate) fn is_stale(report: &CheckReport, again: &[CheckReport]) -> bool {
    again.iter().any(|failed| {
        (&failed.name, failed.conclusion, &failed.url)
            == (&report.name, report.conclusion, &report.url)
            // Each attempt of a job has an address of its own; other apps may keep theirs.
            && (matches!(place(&report.url), Some(Place::Workflow(_))) || report.at <= failed.at)
    })
}

impl GitHubHost {
    /// Has failed checks run again. A repeated call for a check that already runs again must not
    /// come here.
    pub(crate) async fn rerun(
        &self,
        repo: &RepoName,
        failed: &[CheckReport],
    ) -> Result<Rerun, HostError> {
        let mut places = BTreeSet::new();
        for check in failed {
            let Some(place) = place(&check.url) else {
                let words =
                    format!("{} is a commit status, which GitHub cannot repeat", check.name);
                return Ok(Rerun::Refused(words));
            };
            places.insert(place);
        }
        for place in places {
            let rest = match place {
                Place::Workflow(id) => format!("/actions/runs/{id}/rerun-failed-jobs"),
                Place::CheckRun(id) => format!("/check-runs/{id}/rerequest"),
            };
            match self.client.call(repo, Method::POST, &rest, Some(&json!({}))).await {
                Ok(_) => {}
                Err(Refused { status: 403 | 409, error, .. }) if is_busy(&error) => {
                    return Ok(Rerun::Busy);
                }
                Err(Refused { status: 403 | 404 | 409 | 422, error, .. }) => {
                    return Ok(Rerun::Refused(error.to_string()));
                }
                Err(refused) => return Err(refused.error),
            }
        }
        Ok(Rerun::Requested)
    }

    /// Whether every workflow run that these checks are jobs of has ended. One that may not be read
    /// counts as ended.
    pub(crate) async fn workflows_have_ended(
        &self,
        repo: &RepoName,
        checks: &[CheckReport],
    ) -> Result<bool, HostError> {
        let places: BTreeSet<Place> = checks.iter().filter_map(|it| place(&it.url)).collect();
        for place in places {
            let Place::Workflow(id) = place else { continue };
            let run: Result<wire::ListedRun, Refused> =
                self.client.get(repo, &format!("/actions/runs/{id}")).await;
            match run {
                Ok(run) if run.status.as_deref() != Some("completed") => return Ok(false),
                Ok(_) | Err(Refused { status: 403 | 404, .. }) => {}
                Err(refused) => return Err(refused.error),
            }
        }
        Ok(true)
    }

    /// Cancels the workflow runs of a candidate on its test branch. Without the permission they end
    /// by themselves.
    pub(crate) async fn cancel_workflows(
        &self,
        repo: &RepoName,
        sha: &Sha,
        branch: &BranchName,
    ) -> Result<(), HostError> {
        let rest = format!("/actions/runs?head_sha={sha}&branch={}", part(branch.as_str()));
        let runs: Result<Vec<wire::ListedRun>, Refused> =
            self.client.list(repo, &rest, Some("workflow_runs")).await;
        let runs = match runs {
            Ok(runs) => runs,
            Err(Refused { status: 403 | 404, .. }) => return Ok(()),
            Err(refused) => return Err(refused.error),
        };
        for run in runs.iter().filter(|run| run.status.as_deref() != Some("completed")) {
            let rest = format!("/actions/runs/{}/cancel", run.id);
            match self.client.call(repo, Method::POST, &rest, Some(&json!({}))).await {
                Ok(_) | Err(Refused { status: 403 | 404 | 409, .. }) => {}
                Err(refused) => return Err(refused.error),
            }
        }
        Ok(())
    }
}

/// GitHub's words for a workflow run of which a job still runs.
fn is_busy(error: &HostError) -> bool {
    error.to_string().to_lowercase().contains("already running")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_found_by_its_address() {
        let workflow = "https://github.com/acme/shop/actions/runs/12/job/34?pr=5";
        assert!(place(workflow) == Some(Place::Workflow(12)));
        assert!(place("https://github.com/acme/shop/runs/56") == Some(Place::CheckRun(56)));
        assert!(place("https://ci.example/builds/7").is_none());
        assert!(place("").is_none());
    }
}
