//! The tree that a target must have with some changes, computed from the commits alone: not from
//! the candidate, nor from what the candidate was built on.

use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::{HostError, PastLanding};
use signalbox_domain::queue::{Composition, Land, LandingProof, MOST_PATHS, MergeMethod, Mismatch};
use signalbox_domain::time::Timestamp;

use crate::candidate::{Outcome, merge_trees};
use crate::git::{Author, Git, parse_sha, parse_tree};

/// What a commit should be: a base with the changes of these heads, in their order.
pub(crate) struct Claim<'a> {
    base: &'a Sha,
    heads: Vec<&'a Sha>,
    method: MergeMethod,
}

impl<'a> From<&'a Land> for Claim<'a> {
    fn from(land: &'a Land) -> Self {
        let heads = land.changes.iter().map(|change| &change.head).collect();
        Self { base: &land.expected, heads, method: land.method }
    }
}

impl<'a> From<&'a LandingProof> for Claim<'a> {
    fn from(proof: &'a LandingProof) -> Self {
        let heads = proof.changes.iter().map(|(_, head)| head).collect();
        Self { base: &proof.base, heads, method: proof.method }
    }
}

/// Checks that a commit is what it should be; the difference if it is not.
pub(crate) async fn check(
    git: &Git,
    claim: &Claim<'_>,
    commit: &str,
    at: Timestamp,
) -> Result<Option<Mismatch>, HostError> {
    let found = git.tree(commit).await?;
    let mut first = None;
    // Candidates that were built before a change of the settings have the former method.
    for method in of_any(claim.method) {
        let expected = expected(git, claim.base, &claim.heads, method, at).await?;
        if expected.as_ref().is_ok_and(|expected| *expected == found) {
            return Ok(None);
        }
        first.get_or_insert(expected);
    }
    let (expected, paths) = match first {
        Some(Ok(expected)) => {
            let paths = differing(git, &expected, &found).await?;
            (Some(expected), paths)
        }
        Some(Err(conflicting)) => (None, conflicting),
        None => (None, Vec::new()),
    };
    let (base, commit) = (claim.base.clone(), parse_sha(commit)?);
    Ok(Some(Mismatch { base, commit, found, expected, paths }))
}

/// The paths in which two trees differ, at most [`MOST_PATHS`].
pub(crate) async fn differing(
    git: &Git,
    expected: &TreeId,
    found: &TreeId,
) -> Result<Vec<String>, HostError> {
    let args = ["diff-tree", "-r", "-z", "--name-only", expected.as_str(), found.as_str()];
    let listed = git.ok(&args).await?.stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let paths = listed.split('\0').filter(|path| !path.is_empty());
    Ok(paths.take(MOST_PATHS).map(ToOwned::to_owned).collect())
}

/// How a landing that is found on the target was checked: as if it were to land now.
pub(crate) async fn of_landed(
    git: &Git,
    land: &Land,
    commit: &str,
    at: Timestamp,
) -> Result<Composition, HostError> {
    Ok(match check(git, &land.into(), commit, at).await? {
        None => Composition::recomputed(),
        Some(_) => Composition::not_checked(Composition::FOUND_ON_TARGET),
    })
}

/// Proves a landing of the past again. Commits that the repository no longer has cannot be checked.
pub(crate) async fn again(
    git: &Git,
    landing: &PastLanding,
) -> Result<Result<Composition, Mismatch>, HostError> {
    let PastLanding { landed, proof } = landing;
    let heads = proof.changes.iter().map(|(_, head)| head);
    for commit in [&landed.sha, &proof.base].into_iter().chain(heads) {
        match git.tree(commit.as_str()).await {
            Ok(_) => {}
            Err(error @ HostError::NotFound { .. }) => {
                return Ok(Ok(Composition::not_checked(error.to_string())));
            }
            Err(error) => return Err(error),
        }
    }
    // Always the same time, so that no new objects are written by the next proof.
    let at = Timestamp::from_unix_seconds(0);
    let mismatch = check(git, &proof.into(), landed.sha.as_str(), at).await?;
    Ok(mismatch.map_or_else(|| Ok(Composition::recomputed()), Err))
}

/// All methods, this one first.
fn of_any(method: MergeMethod) -> impl Iterator<Item = MergeMethod> {
    let all = [MergeMethod::Squash, MergeMethod::MergeCommit, MergeMethod::Rebase];
    std::iter::once(method).chain(all.into_iter().filter(move |other| *other != method))
}

/// The tree of a commit with changes, or the conflicting paths.
async fn expected(
    git: &Git,
    base: &Sha,
    heads: &[&Sha],
    method: MergeMethod,
    at: Timestamp,
) -> Result<Outcome<TreeId>, HostError> {
    let mut composed = Composed::of(git, base, method, at).await?;
    for head in heads {
        if let Err(conflicting) = composed.add(head).await? {
            return Ok(Err(conflicting));
        }
    }
    Ok(Ok(composed.tree()?))
}

/// A tree to which changes are added, one after the other.
pub(crate) struct Composed<'a> {
    git: &'a Git,
    base: &'a Sha,
    method: MergeMethod,
    at: Timestamp,
    tree: String,
    /// What the target contains so far, besides the content of `tree`.
    contained: Vec<String>,
}

impl<'a> Composed<'a> {
    pub(crate) async fn of(
        git: &'a Git,
        base: &'a Sha,
        method: MergeMethod,
        at: Timestamp,
    ) -> Result<Self, HostError> {
        let tree = git.tree(base.as_str()).await?.to_string();
        Ok(Self { git, base, method, at, tree, contained: vec![base.to_string()] })
    }

    pub(crate) fn tree(&self) -> Result<TreeId, HostError> {
        parse_tree(&self.tree)
    }

    /// Adds the changes of a head, unless they conflict: then the paths.
    pub(crate) async fn add(&mut self, head: &Sha) -> Result<Outcome<()>, HostError> {
        if self.method == MergeMethod::Rebase {
            return self.replay(head).await;
        }
        let contained: Vec<&str> = self.contained.iter().map(String::as_str).collect();
        match merged(self.git, &self.tree, &contained, head.as_str(), self.at).await? {
            Ok(next) => self.tree = next,
            Err(paths) => return Ok(Err(paths)),
        }
        if self.method == MergeMethod::MergeCommit {
            self.contained.push(head.to_string());
        }
        Ok(Ok(()))
    }

    async fn replay(&mut self, head: &Sha) -> Result<Outcome<()>, HostError> {
        let range = format!("{}..{head}", self.base);
        let args = ["rev-list", "--reverse", "--topo-order", "--no-merges", "--parents", &range];
        for line in self.git.ok(&args).await?.text().lines() {
            let mut commits = line.split(' ');
            let (Some(commit), Some(parent)) = (commits.next(), commits.next()) else {
                let words = format!("could not replay commit {line}: it has no parent");
                return Err(HostError::Rejected { words });
            };
            match merged(self.git, &self.tree, &[parent], commit, self.at).await? {
                Ok(next) => self.tree = next,
                Err(paths) => return Ok(Err(paths)),
            }
        }
        Ok(Ok(()))
    }
}

/// The merge of a commit into a tree whose history is that of these commits.
async fn merged(
    git: &Git,
    tree: &str,
    history: &[&str],
    commit: &str,
    at: Timestamp,
) -> Result<Outcome<String>, HostError> {
    let author =
        Author { name: "Signalbox".into(), email: "signalbox@localhost".into(), date: None };
    let ours = git.commit_tree(tree, history, "proof\n", &author, at).await?;
    merge_trees(git, &ours, commit).await
}
