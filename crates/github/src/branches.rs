//! Refs: set, deleted, listed.

use reqwest::Method;
use serde_json::json;
use signalbox_domain::ids::{BranchName, RepoName, Sha};
use signalbox_domain::ports::{HostError, TestBranch};

use crate::client::{Refused, needs_bypass, path};
use crate::host::{GitHubHost, sha};
use crate::wire;

/// Where candidates are built, and where they are tested.
pub(crate) const TEMPORARY: &str = "signalbox-temp/";
pub(crate) const TESTED: &str = "signalbox-merge/";

impl GitHubHost {
    /// Puts a branch of the queue's own on a commit, wherever it was before.
    pub(crate) async fn put_branch(
        &self,
        repo: &RepoName,
        branch: &str,
        commit: &str,
    ) -> Result<(), Refused> {
        let body = json!({ "ref": format!("refs/heads/{branch}"), "sha": commit });
        let made = match self.client.call(repo, Method::POST, "/git/refs", Some(&body)).await {
            Err(Refused { status: 422, words, .. }) if words.contains("already exists") => {
                self.move_branch(repo, branch, commit, true).await
            }
            made => made.map(drop),
        };
        match made {
            Ok(()) => {}
            // It was deleted in between: the next attempt creates it.
            Err(Refused { status: 422, words, .. })
                if words.contains("Reference does not exist") =>
            {
                let words = format!("branch {branch} was deleted concurrently: {words}");
                return Err(HostError::Unavailable { words }.into());
            }
            // Not the fault of its commits: rules forbid the queue's own branches.
            Err(Refused { status: 422, words, .. }) if needs_bypass(&words) => {
                let words = format!(
                    "{words}: let the app bypass the rules of {TEMPORARY}** and {TESTED}**"
                );
                return Err(HostError::AccessDenied { words }.into());
            }
            Err(refused) => return Err(refused),
        }
        self.places.is_at(repo, branch, commit);
        Ok(())
    }

    /// Moves a branch; without `force` only forwards.
    pub(crate) async fn move_branch(
        &self,
        repo: &RepoName,
        branch: &str,
        commit: &str,
        force: bool,
    ) -> Result<(), Refused> {
        let rest = format!("/git/refs/heads/{}", path(branch));
        let body = json!({ "sha": commit, "force": force });
        self.client.call(repo, Method::PATCH, &rest, Some(&body)).await.map(drop)
    }

    /// Deletes a branch; one that is gone is fine.
    pub(crate) async fn drop_branch(&self, repo: &RepoName, branch: &str) -> Result<(), HostError> {
        let rest = format!("/git/refs/heads/{}", path(branch));
        match self.client.call(repo, Method::DELETE, &rest, None).await {
            Ok(_) => Ok(()),
            Err(Refused { status: 422, words, .. }) if words.contains("does not exist") => Ok(()),
            // It is deleted, or the app may not delete it: reading it again decides.
            Err(refused) if refused.status == 404 => {
                let rest = format!("/git/ref/heads/{}", path(branch));
                let found: Option<wire::Reference> = self.client.find(repo, &rest).await?;
                found.map_or(Ok(()), |_| Err(refused.error))
            }
            Err(refused) => Err(refused.error),
        }
    }

    pub(crate) async fn delete(
        &self,
        repo: &RepoName,
        branch: &str,
        expected: Option<&Sha>,
    ) -> Result<(), HostError> {
        // Only this server names branches like this: a branch that it created is unchanged.
        if let Some(expected) = expected
            && !self.places.was_put(repo, branch, expected)
        {
            let rest = format!("/git/ref/heads/{}", path(branch));
            let found: Option<wire::Reference> = self.client.find(repo, &rest).await?;
            if found.is_none_or(|found| found.object.sha != expected.as_str()) {
                return Ok(());
            }
        }
        self.drop_branch(repo, branch).await?;
        self.places.is_gone(repo, branch);
        Ok(())
    }

    pub(crate) async fn list_test_branches(
        &self,
        repo: &RepoName,
    ) -> Result<Vec<TestBranch>, HostError> {
        let mut branches = Vec::new();
        let now = self.client.clock.now();
        for prefix in [TEMPORARY, TESTED] {
            let rest = format!("/git/matching-refs/heads/{}", path(prefix.trim_end_matches('/')));
            let found: Vec<wire::Reference> = self.client.pages(repo, &rest, None).await?;
            for one in found {
                let name = one.name.strip_prefix("refs/heads/").unwrap_or(&one.name);
                let Ok(branch) = BranchName::new(name) else { continue };
                if name.starts_with(prefix) && !self.scratch_branches.is_kept(name, now) {
                    branches.push(TestBranch { branch, sha: sha(&one.object.sha)? });
                }
            }
        }
        Ok(branches)
    }
}
