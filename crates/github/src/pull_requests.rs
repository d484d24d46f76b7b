//! Pull requests as the host shows them.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::ports::{HostError, PullRequestQuery};
use signalbox_domain::queue::{
    Dependency, Mergeability, PullRequest, PullRequestState, STATE_LABELS,
};

use crate::client::part;
use crate::host::{CASE_INSENSITIVE_NAMES, GitHubHost, sha};
use crate::wire;

/// The longest title that is kept, in characters.
const MAX_TITLE: usize = 1_024;
/// Who is shown when the account is gone.
const GHOST: &str = "ghost";

impl GitHubHost {
    pub(crate) async fn read_pull_request(
        &self,
        repo: &RepoName,
        query: &PullRequestQuery,
    ) -> Result<Option<PullRequest>, HostError> {
        let number = match query {
            PullRequestQuery::Number(number) => Some(number.0),
            PullRequestQuery::Branch(branch) => self.newest_from(repo, branch).await?,
        };
        let Some(number) = number else { return Ok(None) };
        let read_at = self.client.clock.now();
        let found: Option<wire::Pull> = self.client.find(repo, &format!("/pulls/{number}")).await?;
        if let Some(pull) = &found {
            self.shown.seen(repo, PrNumber(number), pull.comments == Some(0), read_at);
        }
        found.map(|pull| shown(repo, &pull)).transpose()
    }

    /// The newest pull request from a branch of the repository itself, open ones first.
    async fn newest_from(&self, repo: &RepoName, branch: &str) -> Result<Option<u32>, HostError> {
        let head = part(&format!("{}:{branch}", repo.owner));
        let rest = format!("/pulls?state=all&sort=created&direction=desc&head={head}");
        let found: Vec<wire::Pull> = self.client.list(repo, &rest, None).await?;
        let open = found.iter().find(|pull| pull.state == "open");
        Ok(open.or_else(|| found.first()).map(|pull| pull.number))
    }
}

pub(crate) fn shown(repo: &RepoName, pull: &wire::Pull) -> Result<PullRequest, HostError> {
    let merged = pull.merged.unwrap_or(false) || pull.merged_at.is_some();
    let state = match pull.state.as_str() {
        "open" => PullRequestState::Open,
        _ if merged => PullRequestState::Merged,
        _ => PullRequestState::Closed,
    };
    let base = BranchName::new(pull.base.name.as_str());
    let base = base.map_err(|error| HostError::Rejected { words: error.to_string() })?;
    let body = pull.body.clone().unwrap_or_default();
    Ok(PullRequest {
        number: PrNumber(pull.number),
        title: pull.title.as_deref().unwrap_or_default().chars().take(MAX_TITLE).collect(),
        depends_on: Dependency::read(&body, repo, CASE_INSENSITIVE_NAMES),
        body,
        author: pull.user.as_ref().map_or(GHOST, |user| &user.login).to_owned(),
        head: sha(&pull.head.sha)?,
        head_branch: Some(pull.head.name.clone()),
        base,
        state,
        merged_as: None,
        draft: pull.draft.unwrap_or(false),
        mergeability: mergeability(pull, state),
        url: pull.html_url.clone().unwrap_or_default(),
        labels: labels(pull),
    })
}

fn labels(pull: &wire::Pull) -> Vec<String> {
    let names = pull.labels.iter().map(|label| &label.name);
    names.filter(|name| !name.starts_with(STATE_LABELS)).cloned().collect()
}

/// Whether the host reports the pull request as mergeable. `null` means unknown: it is read again
/// later. A pull request that is behind is mergeable, as the queue builds on the newest target.
fn mergeability(pull: &wire::Pull, state: PullRequestState) -> Mergeability {
    if state != PullRequestState::Open {
        return Mergeability::Unspecified;
    }
    let not = |words: &str| Mergeability::NotMergeable(words.to_owned());
    match (pull.mergeable, pull.mergeable_state.as_deref().unwrap_or_default()) {
        (None, _) | (Some(true), "unknown") => Mergeability::InProgress,
        (Some(false), _) | (Some(true), "dirty") => not("it has conflicts with its base branch"),
        (Some(true), "blocked") => {
            not("the rules of its base branch are not met: a review or a check is missing")
        }
        (Some(true), _) => Mergeability::Mergeable,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pull(change: &Value) -> wire::Pull {
        let sha = "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70";
        let mut body = json!({
            "number": 7, "title": "t", "body": null, "user": null, "state": "open", "draft": false,
            "merged": false, "mergeable": true, "mergeable_state": "clean", "html_url": "u",
            "head": {"ref": "fix", "sha": sha, "repo": null},
            "base": {"ref": "main", "sha": sha, "repo": {"full_name": "a/b"}},
        });
        for (key, value) in change.as_object().expect("an object") {
            body[key] = value.clone();
        }
        serde_json::from_value(body).expect("decoded")
    }

    fn repo() -> RepoName {
        RepoName::parse("github.example/a/b").expect("a repository")
    }

    fn says(change: &Value) -> Mergeability {
        shown(&repo(), &pull(change)).expect("shown").mergeability
    }

    #[test]
    fn null_is_neither_yes_nor_no() {
        assert_eq!(says(&json!({"mergeable": null})), Mergeability::InProgress);
        assert_eq!(says(&json!({"mergeable_state": "unknown"})), Mergeability::InProgress);
        for fine in ["clean", "behind", "unstable", "has_hooks", "draft", "new word"] {
            assert_eq!(says(&json!({"mergeable_state": fine})), Mergeability::Mergeable, "{fine}");
        }
        for not in [json!({"mergeable": false}), json!({"mergeable_state": "blocked"})] {
            assert!(matches!(says(&not), Mergeability::NotMergeable(_)), "{not}");
        }
    }

    #[test]
    fn dependencies_are_read_from_the_body() {
        let change = json!({"body": "Why.\n\nDepends-On: #6, A/B#5\nDepends-On: a/c#4"});
        let seen = shown(&repo(), &pull(&change)).expect("shown");
        let names: Vec<String> = seen.depends_on.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["#6", "#5", "a/c#4"]);
    }

    #[test]
    fn a_deleted_fork_is_reported_without_its_repository() {
        let seen =
            shown(&repo(), &pull(&json!({"state": "closed", "merged": true}))).expect("shown");
        assert_eq!(seen.state, PullRequestState::Merged);
        assert_eq!((seen.author.as_str(), seen.body.as_str()), ("ghost", ""));
        let seen = shown(&repo(), &pull(&json!({"state": "closed"}))).expect("shown");
        assert_eq!(seen.state, PullRequestState::Closed);
    }
}
