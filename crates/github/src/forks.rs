//! Reports from forks: a workflow run authenticates a report without a token.

use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{HostError, WorkflowRun};

use crate::client::Refused;
use crate::host::{GitHubHost, sha};
use crate::wire;

impl GitHubHost {
    pub(crate) async fn read_workflow_run(
        &self,
        repo: &RepoName,
        id: u64,
    ) -> Result<Option<WorkflowRun>, HostError> {
        let rest = format!("/actions/runs/{id}");
        let found: Option<wire::WorkflowRun> = match self.client.get(repo, &rest).await {
            Ok(run) => Some(run),
            Err(Refused { error: HostError::NotFound { .. }, .. }) => None,
            // Without the permission to read actions, reports cannot be authenticated.
            Err(Refused { status: 403, error: HostError::AccessDenied { words }, .. }) => {
                self.client.visible(repo).await?;
                return Err(HostError::Rejected { words });
            }
            Err(refused) => return Err(refused.error),
        };
        found.map(|run| vouched(repo, &run)).transpose()
    }
}

fn vouched(repo: &RepoName, run: &wire::WorkflowRun) -> Result<WorkflowRun, HostError> {
    let own = format!("{}/{}", repo.owner, repo.name);
    let is_own = |it: &Option<wire::RepoShort>| {
        let name = it.as_ref().and_then(|it| it.full_name.as_deref());
        name.map(|name| name.eq_ignore_ascii_case(&own))
    };
    // Only pull request events count: other events run with rights of this repository.
    let for_pull_request = run.event.as_deref() == Some("pull_request");
    Ok(WorkflowRun {
        live: run.status.as_deref().is_some_and(|status| status != "completed"),
        from_fork: for_pull_request
            && is_own(&run.head_repository) == Some(false)
            && is_own(&run.repository) == Some(true),
        head: sha(&run.head_sha)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(change: &Value) -> WorkflowRun {
        let mut run = json!({
            "status": "in_progress", "event": "pull_request",
            "head_sha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70",
            "head_repository": {"full_name": "eve/calc"},
            "repository": {"full_name": "Acme/Calc"},
        });
        for (key, value) in change.as_object().expect("an object") {
            run[key] = value.clone();
        }
        let repo = RepoName::new("github.com", "acme", "calc").expect("a name");
        vouched(&repo, &serde_json::from_value(run).expect("decoded")).expect("read")
    }

    #[test]
    fn a_run_vouches_while_it_lives_and_comes_from_a_fork() {
        let run = read(&json!({}));
        assert!(run.live && run.from_fork);
        assert!(!read(&json!({"status": "completed"})).live);
        for not_a_fork in [
            json!({"head_repository": {"full_name": "acme/calc"}}),
            json!({"head_repository": null}),
            json!({"repository": {"full_name": "other/calc"}}),
            json!({"event": "workflow_dispatch"}),
            json!({"event": "pull_request_target"}),
        ] {
            assert!(!read(&not_a_fork).from_fork, "{not_a_fork}");
        }
    }
}
