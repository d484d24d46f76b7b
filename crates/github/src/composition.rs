//! Whether a candidate that the host has composed is its base with the changes of its pull
//! requests. Either the objects of the trees are compared, without a clone, or the tree is computed
//! again in a mirror.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use signalbox_domain::ids::{PrNumber, RepoName, Sha};
use signalbox_domain::ports::{HostError, PastLanding};
use signalbox_domain::queue::{
    Candidate, Change, Composition, CompositionCheck, Contribution, Listing, MOST_PATHS,
    MergeMethod, Mismatch, Object, compare_trees,
};

use crate::client::Refused;
use crate::host::{GitHubHost, sha};
use crate::wire;

/// The most objects of all trees that are kept for the next candidates.
const KEPT_OBJECTS: usize = 500_000;

/// Whether candidates are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// The objects of the trees are compared.
    #[default]
    Diff,
    /// The tree is computed again with git on this server, in a mirror of the repository.
    Local,
    /// Nothing is checked.
    Off,
}

/// The trees that were read last, by the id of the commit or tree.
#[derive(Default)]
pub(crate) struct Trees {
    kept: Mutex<VecDeque<(String, Arc<Listing>)>>,
}

impl Trees {
    fn get(&self, id: &str) -> Option<Arc<Listing>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(of, _)| of == id)?;
        let found = kept.remove(at)?;
        let listing = found.1.clone();
        kept.push_back(found);
        Some(listing)
    }

    fn put(&self, id: String, listing: Arc<Listing>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((id, listing));
        let mut objects: usize = kept.iter().map(|(_, listing)| listing.len()).sum();
        while objects > KEPT_OBJECTS && kept.len() > 1 {
            let Some((_, oldest)) = kept.pop_front() else { return };
            objects -= oldest.len();
        }
    }
}

/// A candidate to check.
pub(crate) struct Composed<'a> {
    /// The commit that it was built on.
    pub(crate) base: &'a str,
    /// The changes that were applied to it, in order.
    pub(crate) changes: &'a [&'a Change],
    pub(crate) method: MergeMethod,
    pub(crate) candidate: &'a Candidate,
}

/// Why a check has no result.
pub(crate) enum Unknown {
    /// It may have one later.
    Passing(HostError),
    /// It cannot have one.
    Lasting(String),
}

impl From<Refused> for Unknown {
    fn from(refused: Refused) -> Self {
        Self::from(refused.error)
    }
}

impl From<HostError> for Unknown {
    fn from(error: HostError) -> Self {
        if error.is_passing() { Self::Passing(error) } else { Self::Lasting(error.to_string()) }
    }
}

impl GitHubHost {
    /// Checks a candidate. The inner error is a wrong one.
    pub(crate) async fn composition(
        &self,
        repo: &RepoName,
        composed: &Composed<'_>,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        let checked = match self.verify {
            Verify::Diff => self.compared(repo, composed).await,
            Verify::Local => self.recomputed(repo, composed).await,
            Verify::Off => return Ok(Ok(Composition::not_checked("verify = \"off\""))),
        };
        match checked {
            Ok(checked) => Ok(checked),
            Err(Unknown::Passing(error)) => Err(error),
            Err(Unknown::Lasting(why)) => {
                tracing::warn!(repo = %repo, candidate = %composed.candidate.sha, %why,
                    "could not check the composition of a candidate");
                Ok(Ok(Composition::not_checked(why)))
            }
        }
    }

    /// Checks a landing of the past. The inner error is a wrong one.
    pub(crate) async fn composition_again(
        &self,
        repo: &RepoName,
        landing: &PastLanding,
    ) -> Result<Result<Composition, Mismatch>, HostError> {
        let PastLanding { landed, proof } = landing;
        let change = |(pr, head): &(PrNumber, Sha)| Change {
            pr: *pr,
            head: head.clone(),
            title: String::new(),
            body: String::new(),
            author: String::new(),
        };
        let changes: Vec<Change> = proof.changes.iter().map(change).collect();
        let composed = Composed {
            base: proof.base.as_str(),
            changes: &changes.iter().collect::<Vec<_>>(),
            method: proof.method,
            candidate: landed,
        };
        self.composition(repo, &composed).await
    }

    async fn compared(
        &self,
        repo: &RepoName,
        composed: &Composed<'_>,
    ) -> Result<Result<Composition, Mismatch>, Unknown> {
        let (mut base, mut parts) = (None, Vec::new());
        for change in composed.changes {
            let head = change.head.as_str();
            let rest = format!("/compare/{}...{head}?per_page=100", composed.base);
            let since: wire::Comparison = self.client.get(repo, &rest).await?;
            if composed.method == MergeMethod::Rebase && !since.is_linear() {
                let why = format!("#{} has merge commits, or more than 100 commits", change.pr);
                return Err(Unknown::Lasting(why));
            }
            let Some((from, ancestor)) = since.base_commit.zip(since.merge_base_commit) else {
                return Err(Unknown::Lasting("the comparison names no merge base".to_owned()));
            };
            if base.is_none() {
                base = Some(self.listing(repo, &from.commit.tree.sha).await?);
            }
            let ancestor = self.listing(repo, &ancestor.commit.tree.sha).await?;
            parts.push((ancestor, self.listing(repo, head).await?));
        }
        let Some(base) = base else {
            return Err(Unknown::Lasting("the candidate has no changes".to_owned()));
        };
        let candidate = self.listing(repo, composed.candidate.tree.as_str()).await?;
        let contributions: Vec<Contribution<'_>> =
            parts.iter().map(|(ancestor, head)| Contribution { ancestor, head }).collect();
        let mut found = compare_trees(&base, &contributions, &candidate);
        found.wrong.truncate(MOST_PATHS);
        found.merged_by_host.truncate(MOST_PATHS);
        if found.wrong.is_empty() {
            return Ok(Ok(Composition {
                check: CompositionCheck::Compared,
                why_not: None,
                merged_by_host: found.merged_by_host,
            }));
        }
        Ok(Err(Mismatch {
            base: sha(composed.base)?,
            commit: composed.candidate.sha.clone(),
            found: composed.candidate.tree.clone(),
            expected: None,
            paths: found.wrong,
        }))
    }

    /// All objects of the tree with this id, or of the commit with this id.
    async fn listing(&self, repo: &RepoName, id: &str) -> Result<Arc<Listing>, Unknown> {
        if let Some(known) = self.trees.get(id) {
            return Ok(known);
        }
        let tree: wire::Tree =
            self.client.get(repo, &format!("/git/trees/{id}?recursive=1")).await?;
        let Some(objects) = tree.objects() else {
            return Err(Unknown::Lasting(format!("the tree {id} is too large to be listed")));
        };
        let listing: Listing =
            objects.map(|(path, mode, id)| (path, Object { mode, id })).collect();
        let listing = Arc::new(listing);
        self.trees.put(id.to_owned(), listing.clone());
        Ok(listing)
    }
}
