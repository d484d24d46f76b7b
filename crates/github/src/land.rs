//! Landing: exactly the tested commit becomes the target's head.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use signalbox_domain::ids::{RepoName, TreeId};
use signalbox_domain::ports::{Head, HostError, LandAnswer};
use signalbox_domain::queue::{Change, Land, MergeMethod, PullRequestState};
use signalbox_hosts::message;

use crate::client::{Refused, misses_of_pull_request, needs_bypass};
use crate::host::{GitHubHost, sha};
use crate::pull_requests::shown;
use crate::scratch_branch::{Applied, Made, ScratchBranch};
use crate::wire;

#[derive(Deserialize)]
struct Merged {
    sha: String,
}

impl GitHubHost {
    pub(crate) async fn land_candidate(
        &self,
        repo: &RepoName,
        land: &Land,
    ) -> Result<LandAnswer, HostError> {
        let mut bench = ScratchBranch::new(self, repo, land.run, "land");
        let answer = self.land_on(&mut bench, repo, land).await;
        bench.leave();
        answer
    }

    async fn land_on(
        &self,
        bench: &mut ScratchBranch<'_>,
        repo: &RepoName,
        land: &Land,
    ) -> Result<LandAnswer, HostError> {
        let Some(head) = self.head_of(repo, land.target.as_str()).await? else {
            return Err(HostError::NotFound { what: format!("branch {}", land.target) });
        };
        if let Some(landed) = self.already_landed(bench, repo, land, &head).await? {
            return Ok(LandAnswer::Landed(landed, None));
        }
        for change in &land.changes {
            if !self.is_unchanged(repo, change).await? {
                return Ok(LandAnswer::HeadMoved { pr: change.pr });
            }
        }
        if head.sha != land.expected {
            return Ok(LandAnswer::TargetMoved(head));
        }
        let tested = Made {
            commit: land.candidate.sha.as_str().to_owned(),
            tree: land.candidate.tree.clone(),
        };
        match self.forward(repo, land, &tested).await? {
            Forward::Done(head) => Ok(LandAnswer::Landed(head, None)),
            Forward::Moved(head) => Ok(LandAnswer::TargetMoved(head)),
            Forward::Forbidden(words) => self.merge_by_host(repo, land, &words).await,
            // The target has the same content under another commit, or other lanes have landed:
            // the changes are replayed on it, and the result must be the wanted tree.
            Forward::Diverged => {
                let Some(wanted) = self.wanted_tree(bench, land).await? else {
                    return Ok(LandAnswer::TargetMoved(head));
                };
                let ground = Made { commit: head.sha.as_str().to_owned(), tree: head.tree.clone() };
                let made = match bench.apply(ground, &land.changes, land.method).await? {
                    Applied::Commit { made, .. } if made.tree == wanted => made,
                    Applied::Commit { .. } | Applied::Conflict { .. } => {
                        return Ok(LandAnswer::TargetMoved(head));
                    }
                };
                match self.forward(repo, land, &made).await? {
                    Forward::Done(head) => Ok(LandAnswer::Landed(head, None)),
                    Forward::Moved(head) => Ok(LandAnswer::TargetMoved(head)),
                    Forward::Forbidden(words) => self.merge_by_host(repo, land, &words).await,
                    Forward::Diverged => Ok(LandAnswer::TargetMoved(head)),
                }
            }
        }
    }

    /// Moves the target forwards to a commit. The host refuses if that commit does not stand on
    /// wherever the target is by then, so nothing that landed meanwhile is lost.
    async fn forward(&self, repo: &RepoName, land: &Land, to: &Made) -> Result<Forward, HostError> {
        let refused = match self.move_branch(repo, land.target.as_str(), &to.commit, false).await {
            Ok(()) => {
                let head = Head { sha: sha(&to.commit)?, tree: to.tree.clone() };
                return Ok(Forward::Done(head));
            }
            Err(refused) if refused.error.is_passing() && !needs_bypass(&refused.words) => {
                return Err(refused.error);
            }
            Err(refused) => refused,
        };
        match self.head_of(repo, land.target.as_str()).await? {
            Some(head) if head.sha.as_str() == to.commit => Ok(Forward::Done(head)),
            Some(head) if head.sha != land.expected => Ok(Forward::Moved(head)),
            Some(_) if refused.words.to_lowercase().contains("fast forward") => {
                Ok(Forward::Diverged)
            }
            Some(_) => Ok(Forward::Forbidden(refused.words)),
            None => Err(HostError::NotFound { what: format!("branch {}", land.target) }),
        }
    }

    /// The branch's rules forbid moving it: the host merges the pull request itself, with the
    /// tested head, and the result is reported with its own tree.
    async fn merge_by_host(
        &self,
        repo: &RepoName,
        land: &Land,
        words: &str,
    ) -> Result<LandAnswer, HostError> {
        let [change] = land.changes.as_slice() else {
            let words = format!(
                "{words}: let the app bypass the rules of branch {}, as several pull requests can \
                 only land together by moving it",
                land.target
            );
            return Err(HostError::AccessDenied { words });
        };
        let method = match land.method {
            MergeMethod::MergeCommit => "merge",
            MergeMethod::Squash => "squash",
            MergeMethod::Rebase => "rebase",
        };
        let mut body = json!({ "sha": change.head.as_str(), "merge_method": method });
        if land.method != MergeMethod::Rebase {
            // That of the candidate, which names all authors.
            let candidate = self.commit_of(repo, land.candidate.sha.as_str()).await?;
            let text = candidate.message.unwrap_or_else(|| message(change));
            let (title, text) = text.split_once("\n\n").unwrap_or((&text, ""));
            body["commit_title"] = json!(title);
            body["commit_message"] = json!(text);
        }
        let rest = format!("/pulls/{}/merge", change.pr);
        let merged: Result<Merged, Refused> =
            self.client.make(repo, Method::PUT, &rest, &body).await;
        match merged {
            Ok(merged) => {
                let tree = self.tree_of(repo, &merged.sha).await?;
                if land.exact && tree != land.candidate.tree {
                    tracing::error!(
                        pr = %change.pr, landed = %tree, tested = %land.candidate.tree,
                        "the git host merged a tree that differs from the tested one"
                    );
                }
                Ok(LandAnswer::Landed(Head { sha: sha(&merged.sha)?, tree }, None))
            }
            Err(Refused { status: 409, .. }) => Ok(LandAnswer::HeadMoved { pr: change.pr }),
            Err(Refused { status: 405, words, .. }) if passes(&words) => {
                Err(HostError::Unavailable { words })
            }
            // A rule that keeps the app from the branch is not the pull request's fault; its
            // own unmet requirements are.
            Err(Refused { status: 405 | 422, words, .. })
                if needs_bypass(&words) && !misses_of_pull_request(&words) =>
            {
                let words = format!(
                    "{words}: let the app bypass the rules of branch {}, or let it merge pull \
                     requests with the queue's merge method",
                    land.target
                );
                Err(HostError::AccessDenied { words })
            }
            Err(refused) => Err(refused.error),
        }
    }

    async fn is_unchanged(&self, repo: &RepoName, change: &Change) -> Result<bool, HostError> {
        let rest = format!("/pulls/{}", change.pr);
        let found: Option<wire::Pull> = self.client.find(repo, &rest).await?;
        let Some(found) = found else { return Ok(false) };
        let seen = shown(repo, &found)?;
        Ok(seen.head == change.head && seen.state == PullRequestState::Open)
    }

    /// The tree that must land: the tested one, or that of the clean merge of the target with the
    /// candidate; `None` when that merge is not clean.
    async fn wanted_tree(
        &self,
        bench: &mut ScratchBranch<'_>,
        land: &Land,
    ) -> Result<Option<TreeId>, HostError> {
        if land.exact {
            return Ok(Some(land.candidate.tree.clone()));
        }
        let (ours, theirs) = (land.expected.as_str(), land.candidate.sha.as_str());
        let merged = bench.merge(ours, theirs, "signalbox: temporary merge").await?;
        Ok(merged.map(|made| made.tree))
    }

    /// The commit of an earlier try whose answer was lost: the candidate itself, or a commit with
    /// the wanted tree that was put on the expected head.
    async fn already_landed(
        &self,
        bench: &mut ScratchBranch<'_>,
        repo: &RepoName,
        land: &Land,
        head: &Head,
    ) -> Result<Option<Head>, HostError> {
        let candidate = Head { sha: land.candidate.sha.clone(), tree: land.candidate.tree.clone() };
        if head.sha == candidate.sha {
            return Ok(Some(candidate));
        }
        if head.sha == land.expected {
            return Ok(None);
        }
        if self.is_ancestor(repo, candidate.sha.as_str(), head.sha.as_str()).await? {
            return Ok(Some(candidate));
        }
        let rest = format!("/compare/{}...{}?per_page=100", land.expected, head.sha);
        let found: Option<wire::Comparison> = self.client.find(repo, &rest).await?;
        let Some(since) = found.filter(|it| it.status.as_deref() == Some("ahead")) else {
            return Ok(None);
        };
        let Some(wanted) = self.wanted_tree(bench, land).await? else { return Ok(None) };
        // The first parents only, newest first: commits that a merge brought in were never the
        // target's head.
        let mut at = head.sha.as_str();
        while let Some(commit) = since.commits.iter().find(|it| it.sha == at) {
            if commit.commit.tree.sha == wanted.as_str() {
                return Ok(Some(Head { sha: sha(&commit.sha)?, tree: wanted }));
            }
            let Some(parent) = commit.parents.first() else { break };
            at = &parent.sha;
        }
        Ok(None)
    }
}

/// The outcome of moving the target forward.
enum Forward {
    /// It is there.
    Done(Head),
    /// It is elsewhere.
    Moved(Head),
    /// The commit does not stand on it.
    Diverged,
    /// The branch's rules forbid it, in the host's words.
    Forbidden(String),
}

/// Whether a refusal to merge is temporary.
fn passes(words: &str) -> bool {
    let lower = words.to_lowercase();
    ["try the merge again", "already in progress", "being computed"]
        .iter()
        .any(|it| lower.contains(it))
}
