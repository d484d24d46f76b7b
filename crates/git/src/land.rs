//! Landing: what was tested, and nothing else, becomes the target's head.

use signalbox_domain::ports::{Head, HostError, LandAnswer};
use signalbox_domain::queue::Land;
use signalbox_domain::time::Timestamp;

use crate::candidate::{Applied, apply};
use crate::git::{Git, parse_sha};

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
        // The target has the same content under another commit: the changes are put on it once
        // more, and the result must be the tested tree.
        let changes = &land.changes;
        match apply(git, head.sha.as_str(), changes, land.method, at).await? {
            Applied::Commit(commit) if git.tree(&commit).await? == land.candidate.tree => commit,
            Applied::Commit(_) | Applied::Conflict { .. } => {
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

/// Whether the candidate is on the target already, from a try whose answer was lost.
pub(crate) async fn has_landed(git: &Git, land: &Land) -> Result<bool, HostError> {
    let target = format!("refs/heads/{}", land.target);
    git.is_ancestor(land.candidate.sha.as_str(), &target).await
}
