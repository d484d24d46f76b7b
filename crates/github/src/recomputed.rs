//! `verify = "local"`: the tree of a candidate is computed again with git on this server, in a
//! mirror of the repository.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::{Composition, Mismatch};
use signalbox_hosts::{Recomputation, Recomputed, Recomputer, Remote};

use crate::client::{Refused, path};
use crate::composition::{Composed, Unknown};
use crate::host::{GitHubHost, sha};
use crate::wire;

/// The user name that GitHub expects with a token, of an app or of a user.
const USER: &str = "x-access-token";

/// What computes trees again.
pub(crate) struct Recomputing {
    pub(crate) recomputer: Arc<dyn Recomputer>,
    /// The folder of the mirrors.
    pub(crate) folder: PathBuf,
}

impl GitHubHost {
    /// Computes the tree of a candidate again. The inner error is a wrong one.
    pub(crate) async fn recomputed(
        &self,
        repo: &RepoName,
        composed: &Composed<'_>,
    ) -> Result<Result<Composition, Mismatch>, Unknown> {
        let Some(recomputing) = &self.recomputing else {
            return Err(Unknown::Lasting("this program has no git for mirrors".to_owned()));
        };
        let name = format!("{}/{}", repo.owner, repo.name);
        let recomputed = match self.recompute(recomputing, repo, composed, &name).await {
            // It may have another name now, which the API follows and git does not.
            Err(HostError::NotFound { what }) => {
                let current = self.current_name(repo).await?;
                if current.eq_ignore_ascii_case(&name) {
                    return Err(Unknown::Lasting(what));
                }
                self.recompute(recomputing, repo, composed, &current).await
            }
            recomputed => recomputed,
        };
        let recomputed = recomputed.map_err(unknown)?;
        let (found, expected, paths) = match recomputed {
            Recomputed::Tree { found, expected, paths } => (found, expected, paths),
            Recomputed::Conflict { head, paths } => {
                let pr = composed.changes.get(head).map(|change| format!("#{}", change.pr));
                let pr = pr.unwrap_or_default();
                let paths = paths.join(", ");
                let why = format!("{pr} conflicts for git on this server, in {paths}");
                return Err(Unknown::Lasting(why));
            }
        };
        let base = sha(composed.base)?;
        if found == expected && found == composed.candidate.tree {
            return Ok(Ok(Composition::recomputed()));
        }
        let (commit, expected) = (composed.candidate.sha.clone(), Some(expected));
        Ok(Err(Mismatch { base, commit, found, expected, paths }))
    }

    /// Computes the tree again in a repository of that name; a second time with another token when
    /// the host rejects the first.
    async fn recompute(
        &self,
        recomputing: &Recomputing,
        repo: &RepoName,
        composed: &Composed<'_>,
        name: &str,
    ) -> Result<Recomputed, HostError> {
        let url = format!("{}/{}.git", self.client.git_url(), path(name));
        let base = sha(composed.base)?;
        let mut is_first = true;
        loop {
            let token = self.client.git_token(repo).await?;
            let authorization = format!("Basic {}", STANDARD.encode(format!("{USER}:{token}")));
            let order = Recomputation {
                mirror: recomputing.mirror(repo),
                remote: Remote { url: url.clone(), authorization },
                base: &base,
                heads: composed.changes.iter().map(|change| &change.head).collect(),
                method: composed.method,
                candidate: &composed.candidate.sha,
                now: self.client.clock.now(),
            };
            match recomputing.recomputer.recompute(order).await {
                Err(HostError::CredentialRejected { .. })
                    if is_first && self.client.renew(repo) =>
                {
                    is_first = false;
                }
                recomputed => return recomputed,
            }
        }
    }

    /// The current `OWNER/NAME` of a repository that was found under another name.
    async fn current_name(&self, repo: &RepoName) -> Result<String, HostError> {
        let found: Result<wire::RepoShort, Refused> = self.client.get(repo, "").await;
        let found = match found {
            Ok(found) => found,
            Err(refused) => {
                self.client.visible(repo).await?;
                return Err(refused.error);
            }
        };
        let current = found.full_name.unwrap_or_default();
        let (owner, name) = current.split_once('/').unwrap_or_default();
        let current = RepoName::new(repo.host.as_str(), owner, name);
        let current = current.map_err(|error| HostError::Rejected { words: error.to_string() })?;
        Ok(format!("{}/{}", current.owner, current.name))
    }
}

/// An error of git in a mirror. What will not pass is not a refusal by the host.
fn unknown(error: HostError) -> Unknown {
    match error {
        HostError::Rejected { words: why }
        | HostError::NotFound { what: why }
        | HostError::Conflict { what: why } => Unknown::Lasting(why),
        passing @ (HostError::RateLimited { .. }
        | HostError::Unavailable { .. }
        | HostError::AccessDenied { .. }
        | HostError::CredentialRejected { .. }) => Unknown::Passing(passing),
    }
}

impl Recomputing {
    /// The mirror of a repository, whose name is not case-sensitive.
    fn mirror(&self, repo: &RepoName) -> PathBuf {
        let repo = repo.key(true);
        self.folder.join(&repo.owner).join(format!("{}.git", repo.name))
    }
}
