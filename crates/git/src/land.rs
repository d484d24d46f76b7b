//! Landing: what was tested, and nothing else, becomes the target's head.

use signalbox_domain::ids::TreeId;
use signalbox_domain::ports::{Head, HostError, LandAnswer};
use signalbox_domain::queue::{Candidate, Land};
use signalbox_domain::time::Timestamp;

use crate::candidate::{Applied, apply, merge_trees};
use crate::git::{Git, parse_sha, parse_tree};

/// How many commits of the target are looked at for a landing whose answer was lost.
const LOOK_BACK: &str = "100";

/// Moves the target by compare-and-swap. The caller has checked the pull requests' heads.
pub(crate) async fn land(git: &Git, land: &Land, at: Timestamp) -> Result<LandAnswer, HostError> {
    let target = format!("refs/heads/{}", land.target);
    let candidate = land.candidate.sha.as_str();
    let Some(head) = git.head(&target).await? else {
        return Err(HostError::NotFound { what: format!("branch {}", land.target) });
    };
    if head.sha != land.expected {
        return Ok(LandAnswer::TargetMoved(head));
    }
    let commit = if git.is_ancestor(land.expected.as_str(), candidate).await? {
        candidate.to_owned()
    } else {
        // The target has the same content under another commit, or other lanes have landed: the
        // changes are put on it once more, and the result must be the tree that is wanted.
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
    let why = format!("signalbox: merge of run {}", land.run);
    if git.move_ref(&target, &commit, Some(land.expected.as_str()), &why).await? {
        let tree = git.tree(&commit).await?;
        return Ok(LandAnswer::Landed(Head { sha: parse_sha(&commit)?, tree }));
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
/// wanted tree that was put on the expected head.
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
    if !git.is_ancestor(land.expected.as_str(), &target).await? {
        return Ok(None);
    }
    let Some(tree) = wanted_tree(git, land).await? else { return Ok(None) };
    let range = format!("{}..{target}", land.expected);
    let args = ["log", "--first-parent", "-n", LOOK_BACK, "--format=%H %T", &range];
    let log = git.ok(&args).await?.text();
    let mut commits = log.lines().filter_map(|line| line.split_once(' '));
    match commits.find(|(_, of)| *of == tree.as_str()) {
        Some((commit, _)) => Ok(Some(Head { sha: parse_sha(commit)?, tree })),
        None => Ok(None),
    }
}
