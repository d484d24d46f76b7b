//! Candidates: changes put on a base by a real three-way merge, without a work tree.

use signalbox_domain::ports::{Built, HostError};
use signalbox_domain::queue::{BuildCandidate, Candidate, Change, MergeMethod};
use signalbox_domain::time::Timestamp;

use crate::git::{Git, parse_sha};

/// The most conflicting paths that are told, and the most bytes of each.
const MAX_PATHS: (usize, usize) = (100, 1_024);

/// What became of changes put on a commit.
pub(crate) enum Applied {
    /// A commit with them.
    Commit(String),
    /// The change at this place in the list conflicts in these paths.
    Conflict { change: usize, paths: Vec<String> },
}

/// Builds a candidate and puts it on its branch.
pub(crate) async fn build(
    git: &Git,
    build: &BuildCandidate,
    at: Timestamp,
) -> Result<Built, HostError> {
    let base = build.base().as_str();
    match apply(git, base, &build.changes, build.method, at).await? {
        Applied::Commit(commit) => {
            let name = format!("refs/heads/{}", build.branch);
            git.move_ref(&name, &commit, None, "signalbox: candidate").await?;
            let tree = git.tree(&commit).await?;
            Ok(Built::Candidate(Candidate { sha: parse_sha(&commit)?, tree }))
        }
        Applied::Conflict { change, paths } => conflict(git, build, change, paths, at).await,
    }
}

/// Finds with whom a change conflicts: with the target itself, or with the first candidate ahead
/// on which it cannot be put any more.
async fn conflict(
    git: &Git,
    build: &BuildCandidate,
    change: usize,
    paths: Vec<String>,
    at: Timestamp,
) -> Result<Built, HostError> {
    let Some(changed) = build.changes.get(change) else {
        return Err(HostError::Rejected { words: "a conflict without a change".into() });
    };
    let alone = std::slice::from_ref(changed);
    let conflicts = async |base: &str| {
        let applied = apply(git, base, alone, build.method, at).await?;
        Ok::<_, HostError>(match applied {
            Applied::Conflict { paths, .. } => Some(paths),
            Applied::Commit(_) => None,
        })
    };
    if let Some(paths) = conflicts(build.target_head.as_str()).await? {
        return Ok(Built::Conflict { pr: changed.pr, with: None, paths });
    }
    for ahead in &build.ahead {
        if let Some(paths) = conflicts(ahead.sha.as_str()).await? {
            return Ok(Built::Conflict { pr: changed.pr, with: Some(ahead.run), paths });
        }
    }
    // It goes on everything ahead: what it conflicts with is in its own group.
    Ok(Built::Conflict { pr: changed.pr, with: None, paths })
}

/// Puts changes on a commit, one after the other.
pub(crate) async fn apply(
    git: &Git,
    base: &str,
    changes: &[Change],
    method: MergeMethod,
    at: Timestamp,
) -> Result<Applied, HostError> {
    let mut tip = base.to_owned();
    for (number, change) in changes.iter().enumerate() {
        let applied = match method {
            MergeMethod::Squash => merged(git, &tip, change, false, at).await?,
            MergeMethod::MergeCommit => merged(git, &tip, change, true, at).await?,
            MergeMethod::Rebase => replayed(git, &tip, change, at).await?,
        };
        match applied {
            Ok(commit) => tip = commit,
            Err(paths) => return Ok(Applied::Conflict { change: number, paths }),
        }
    }
    Ok(Applied::Commit(tip))
}

/// A new commit, or the conflicting paths.
type Outcome = Result<String, Vec<String>>;

async fn merged(
    git: &Git,
    tip: &str,
    change: &Change,
    both_parents: bool,
    at: Timestamp,
) -> Result<Outcome, HostError> {
    let head = change.head.as_str();
    let tree = match merge_trees(git, tip, head).await? {
        Ok(tree) => tree,
        Err(paths) => return Ok(Err(paths)),
    };
    let author = git.author(head).await?;
    let parents = if both_parents { vec![tip, head] } else { vec![tip] };
    Ok(Ok(git.commit_tree(&tree, &parents, &message(change), &author, at).await?))
}

fn message(change: &Change) -> String {
    let title = format!("{} (#{})", change.title, change.pr);
    let body = change
        .body
        .lines()
        .filter(|line| !line.starts_with("merge-commit-title:"))
        .collect::<Vec<_>>()
        .join("\n");
    let body = body.trim();
    if body.is_empty() { format!("{title}\n") } else { format!("{title}\n\n{body}\n") }
}

/// Replays the commits of a pull request on a commit, oldest first. Merges in between are left
/// out, as git itself does; so are commits that change nothing any more.
async fn replayed(
    git: &Git,
    tip: &str,
    change: &Change,
    at: Timestamp,
) -> Result<Outcome, HostError> {
    let head = change.head.as_str();
    let range = format!("{tip}..{head}");
    let list = git.ok(&["rev-list", "--reverse", "--topo-order", "--no-merges", &range]).await?;
    let mut tip = tip.to_owned();
    for commit in list.text().lines() {
        match picked(git, &tip, commit, at).await? {
            Ok(next) => tip = next,
            Err(paths) => return Ok(Err(paths)),
        }
    }
    Ok(Ok(tip))
}

/// Puts one commit on another. The merge base must be the commit's own parent: a helper commit
/// that has the tip's tree and that parent makes it so, also with versions of git that cannot be
/// told the base.
async fn picked(git: &Git, tip: &str, commit: &str, at: Timestamp) -> Result<Outcome, HostError> {
    let author = git.author(commit).await?;
    let tip_tree = git.tree(tip).await?;
    let parent = git.resolve(&format!("{commit}^1")).await?;
    let Some(parent) = parent else {
        return Err(HostError::Rejected {
            words: format!("commit {commit} has no parent and cannot be replayed"),
        });
    };
    let helper = git.commit_tree(tip_tree.as_str(), &[&parent], "helper\n", &author, at).await?;
    let tree = match merge_trees(git, &helper, commit).await? {
        Ok(tree) => tree,
        Err(paths) => return Ok(Err(paths)),
    };
    if tree == tip_tree.as_str() {
        return Ok(Ok(tip.to_owned()));
    }
    let message = git.ok(&["show", "-s", "--format=%B", commit]).await?.text();
    Ok(Ok(git.commit_tree(&tree, &[tip], &message, &author, at).await?))
}

/// The tree of a merge of two commits, or the conflicting paths.
async fn merge_trees(git: &Git, ours: &str, theirs: &str) -> Result<Outcome, HostError> {
    let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
    let done = git.call(&args).await?;
    let text = String::from_utf8_lossy(&done.stdout);
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    let tree = parts.next().unwrap_or_default().trim().to_owned();
    match done.code {
        0 => Ok(Ok(tree)),
        1 => {
            let (most, longest) = MAX_PATHS;
            let cut = |path: &str| path.chars().take(longest).collect::<String>();
            let mut paths: Vec<String> = parts.map(cut).collect();
            paths.dedup();
            paths.truncate(most);
            Ok(Err(paths))
        }
        _ => Err(HostError::Rejected {
            words: format!("{theirs} cannot be merged into {ours}: {}", done.stderr.trim()),
        }),
    }
}
