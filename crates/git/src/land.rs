//! Landing: exactly the tested commit becomes the target's head.

use signalbox_domain::ids::TreeId;
use signalbox_domain::ports::{Head, HostError, LandAnswer};
use signalbox_domain::queue::{Candidate, Composition, Land};
use signalbox_domain::time::Timestamp;

use crate::candidate::{Applied, apply, merge_trees};
use crate::git::{Git, parse_sha, parse_tree};
use crate::{landed, proof};

/// Moves the target by compare-and-swap, and records the landing in the same step. The caller
/// has checked where the target and the pull requests' heads are.
pub(crate) async fn land(
    git: &Git,
    land: &Land,
    head: Head,
    at: Timestamp,
) -> Result<LandAnswer, HostError> {
    let target = format!("refs/heads/{}", land.target);
    let candidate = land.candidate.sha.as_str();
    let commit = if git.is_ancestor(land.expected.as_str(), candidate).await? {
        candidate.to_owned()
    } else {
        // The target has the same content under another commit, or other lanes have landed: the
        // changes are replayed on it, and the result must be the wanted tree.
        let Some(wanted) = wanted_tree(git, land).await? else {
            return Ok(LandAnswer::TargetMoved(head));
        };
        let changes = &land.changes;
        match apply(git, head.sha.as_str(), changes, land.method, at).await? {
            Applied::Commit { commit, .. } if git.tree(&commit).await? == wanted => commit,
            Applied::Commit { .. } | Applied::Conflict { .. } => {
                return Ok(LandAnswer::TargetMoved(head));
            }
        }
    };
    if let Some(mismatch) = proof::check(git, &land.into(), &commit, at).await? {
        return Ok(LandAnswer::Mismatch(mismatch));
    }
    let why = format!("signalbox: merge of run {}", land.run);
    let memory = landed::refs(git, land, &commit).await?;
    if git.move_refs((&target, &commit, land.expected.as_str()), &memory, &why).await? {
        let tree = git.tree(&commit).await?;
        let head = Head { sha: parse_sha(&commit)?, tree };
        return Ok(LandAnswer::Landed(head, Some(Composition::recomputed())));
    }
    match git.head(&target).await? {
        Some(head) => Ok(LandAnswer::TargetMoved(head)),
        None => Err(HostError::NotFound { what: format!("branch {}", land.target) }),
    }
}

/// The tree that must land: the tested one, or that of the clean merge of the target with the
/// candidate; `None` when that merge is not clean.
async fn wanted_tree(git: &Git, land: &Land) -> Result<Option<TreeId>, HostError> {
    if land.exact {
        return Ok(Some(land.candidate.tree.clone()));
    }
    match merge_trees(git, land.expected.as_str(), land.candidate.sha.as_str()).await? {
        Ok(tree) => Ok(Some(parse_tree(&tree)?)),
        Err(_) => Ok(None),
    }
}

/// The commit of an earlier try whose answer was lost: the candidate itself, or a commit with the
/// wanted tree that is remembered as the landing of these changes. A commit that only happens to
/// have that tree was not made by the queue.
///
/// [`HostError::NotFound`] when there is no target.
pub(crate) async fn already_landed(git: &Git, land: &Land) -> Result<Option<Head>, HostError> {
    let target = format!("refs/heads/{}", land.target);
    if git.tip(&target).await?.is_none() {
        return Err(HostError::NotFound { what: format!("branch {}", land.target) });
    }
    let Candidate { sha, tree } = land.candidate.clone();
    if git.is_ancestor(sha.as_str(), &target).await? {
        return Ok(Some(Head { sha, tree }));
    }
    let Some(last) = land.changes.last() else { return Ok(None) };
    let Some(commit) = landed::commit(git, &land.target, &last.head).await? else {
        return Ok(None);
    };
    if !git.is_ancestor(commit.as_str(), &target).await?
        || !git.is_ancestor(land.expected.as_str(), commit.as_str()).await?
    {
        return Ok(None);
    }
    let tree = git.tree(commit.as_str()).await?;
    let wanted = wanted_tree(git, land).await?;
    Ok((wanted.as_ref() == Some(&tree)).then_some(Head { sha: commit, tree }))
}
