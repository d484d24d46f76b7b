//! Building candidates with git's own merges.

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{Built, HostError};
use signalbox_domain::queue::{
    BuildCandidate, Candidate, Change, CheckReport, ConflictWith, MergeMethod,
};

use super::git::{Git, sha};

/// The result: a commit and the changes that add nothing, or the index of a conflicting change and
/// the conflicting paths.
pub(super) enum Put {
    On { commit: Sha, empty: Vec<PrNumber> },
    Conflict { at: usize, paths: Vec<String> },
}

/// Applies changes to a commit, one after the other. A change that adds nothing gets no commit.
pub(super) fn put<'a>(
    git: &Git,
    base: &Sha,
    changes: impl IntoIterator<Item = &'a Change>,
    method: MergeMethod,
) -> Result<Put, HostError> {
    let (mut commit, mut empty) = (base.clone(), Vec::new());
    for (at, change) in changes.into_iter().enumerate() {
        let made = match method {
            MergeMethod::Squash => merged(git, &commit, change, false)?,
            MergeMethod::MergeCommit => merged(git, &commit, change, true)?,
            MergeMethod::Rebase => replayed(git, &commit, change)?,
        };
        match made {
            Ok(made) => {
                if made == commit {
                    empty.push(change.pr);
                }
                commit = made;
            }
            Err(paths) => return Ok(Put::Conflict { at, paths }),
        }
    }
    Ok(Put::On { commit, empty })
}

fn merged(
    git: &Git,
    on: &Sha,
    change: &Change,
    both_parents: bool,
) -> Result<Result<Sha, Vec<String>>, HostError> {
    let tree = match git.merge(None, on, &change.head)? {
        Ok(tree) => tree,
        Err(paths) => return Ok(Err(paths)),
    };
    if tree == git.tree(on)? {
        return Ok(Ok(on.clone()));
    }
    let parents = if both_parents { vec![on, &change.head] } else { vec![on] };
    let title = format!("{} (#{})", change.title, change.pr);
    git.commit(&tree, &parents, &title, &change.head).map(Ok)
}

fn replayed(git: &Git, on: &Sha, change: &Change) -> Result<Result<Sha, Vec<String>>, HostError> {
    let range = format!("{on}..{}", change.head);
    let own = git.text(&["rev-list", "--reverse", "--topo-order", "--no-merges", &range])?;
    let mut on = on.clone();
    for commit in own.lines() {
        let tree = match git.merge(Some(&format!("{commit}^")), &on, &sha(commit)?)? {
            Ok(tree) => tree,
            Err(paths) => return Ok(Err(paths)),
        };
        if tree != git.tree(&on)? {
            let message = git.text(&["show", "-s", "--format=%B", commit])?;
            on = git.commit(&tree, &[&on], &message, &sha(commit)?)?;
        }
    }
    Ok(Ok(on))
}

/// Builds a candidate. `reports` are the checks of the head of its only change.
pub(super) fn build(
    git: &Git,
    build: &BuildCandidate,
    reports: &[CheckReport],
) -> Result<Built, HostError> {
    let wanted = build.changes.iter().chain(build.before.iter().map(|(_, change)| &**change));
    for commit in wanted.map(|change| &change.head).chain([&build.base]) {
        if git.tip(commit.as_str())?.is_none() {
            return Err(HostError::NotFound { what: format!("commit {commit}") });
        }
    }
    for change in &build.changes {
        if git.tip(&landed(build.target.as_str(), &change.head))?.is_some() {
            return Ok(Built::MergedBefore { pr: change.pr });
        }
    }
    let before = build.before.iter().map(|(_, change)| &**change);
    let ground = match put(git, &build.base, before, build.method)? {
        Put::On { commit, .. } => commit,
        Put::Conflict { at, paths } => {
            let (run, change) = build.before.get(at).expect("a valid index");
            let pr = build.changes.first().map_or(change.pr, |first| first.pr);
            return Ok(Built::Conflict { pr, with: ConflictWith::Ahead(*run), paths });
        }
    };
    match put(git, &ground, &build.changes, build.method)? {
        Put::On { commit, empty } => {
            git.text(&["update-ref", &format!("refs/heads/{}", build.branch), commit.as_str()])?;
            let candidate = Candidate { tree: git.tree(&commit)?, sha: commit };
            let head_checks = match build.changes.first().filter(|_| build.direct) {
                Some(only)
                    if git.tree(&only.head)? == candidate.tree
                        && git.is_ancestor(&build.target_head, &only.head)? =>
                {
                    reports.to_vec()
                }
                Some(_) | None => Vec::new(),
            };
            Ok(Built::Candidate { candidate, head_checks, empty, composition: None })
        }
        Put::Conflict { at, paths } => conflict(git, build, at, paths),
    }
}

/// Finds what a change conflicts with: the target, the first candidate ahead that it conflicts
/// with, or an earlier change of its group.
fn conflict(
    git: &Git,
    build: &BuildCandidate,
    at: usize,
    paths: Vec<String>,
) -> Result<Built, HostError> {
    let (before, rest) = build.changes.split_at(at);
    let change = rest.first().expect("a valid index");
    let pr = change.pr;
    if let Put::Conflict { paths, .. } = put(git, &build.target_head, [change], build.method)? {
        return Ok(Built::Conflict { pr, with: ConflictWith::Target, paths });
    }
    for ahead in &build.ahead {
        if let Put::Conflict { paths, .. } = put(git, &ahead.sha, [change], build.method)? {
            return Ok(Built::Conflict { pr, with: ConflictWith::Ahead(ahead.run), paths });
        }
    }
    let alone = |other: &&Change| {
        let both = put(git, &build.target_head, [*other, change], build.method);
        matches!(both, Ok(Put::Conflict { at: 1, .. }))
    };
    let with = match (before.iter().find(alone).or(before.last()), build.ahead.last()) {
        (Some(other), _) => ConflictWith::Group(other.pr),
        (None, Some(ahead)) => ConflictWith::Ahead(ahead.run),
        (None, None) => ConflictWith::Target,
    };
    Ok(Built::Conflict { pr, with, paths })
}

/// The ref that records that a head has landed on a branch, and as which commit.
pub(super) fn landed(target: &str, head: &Sha) -> String {
    format!("refs/landed/{target}/{head}")
}
