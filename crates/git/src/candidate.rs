//! Candidates: changes put on a base by a real three-way merge, without a work tree.

use signalbox_domain::ids::{PrNumber, TreeId};
use signalbox_domain::ports::{Built, HostError};
use signalbox_domain::queue::{
    BuildCandidate, Candidate, Change, CheckReport, ConflictWith, MergeMethod,
};
use signalbox_domain::time::Timestamp;
use signalbox_hosts::{Authored, message, squash_message};

use crate::git::{Git, parse_sha, parse_tree};
use crate::statuses;

/// The most conflicting paths that are reported, and the most bytes of each.
const MAX_PATHS: (usize, usize) = (100, 1_024);

/// The most commits of a pull request whose authors are read.
const MAX_COMMITS: usize = 1_000;
/// The most bytes of their messages.
const MAX_MESSAGES: usize = 8 * 1024 * 1024;

/// The error of git for commits without a common ancestor, after it has read both.
const UNRELATED: &str = "refusing to merge unrelated histories";

/// The outcome of applying changes to a commit.
pub(crate) enum Applied {
    /// A commit with them, its tree where that is known without asking, and those of them that
    /// add nothing.
    Commit { commit: String, tree: Option<TreeId>, empty: Vec<PrNumber> },
    /// The change at this place in the list conflicts in these paths.
    Conflict { change: usize, paths: Vec<String> },
}

/// Builds a candidate and puts it on its branch.
pub(crate) async fn build(
    git: &Git,
    build: &BuildCandidate,
    at: Timestamp,
) -> Result<Built, HostError> {
    let before: Vec<Change> =
        build.before.iter().map(|(_, change)| Change::clone(change)).collect();
    let ground = match apply(git, build.base.as_str(), &before, build.method, at).await? {
        Applied::Commit { commit, .. } => commit,
        Applied::Conflict { change, paths } => return before_conflicts(build, change, paths),
    };
    let applied = match apply(git, &ground, &build.changes, build.method, at).await {
        Err(HostError::Rejected { words }) if build.changes.len() > 1 => {
            return refused_one(git, build, words, at).await;
        }
        applied => applied?,
    };
    match applied {
        Applied::Commit { commit, tree, empty } => {
            let name = format!("refs/heads/{}", build.branch);
            git.move_ref(&name, &commit, None, "signalbox: candidate").await?;
            let tree = match tree {
                Some(tree) => tree,
                None => git.tree(&commit).await?,
            };
            let head_checks = head_checks(git, build, &tree, at).await?;
            Ok(Built::Candidate {
                candidate: Candidate { sha: parse_sha(&commit)?, tree },
                head_checks,
                empty,
                // It is computed a second time when it lands.
                composition: None,
            })
        }
        Applied::Conflict { change, paths } => conflict(git, build, change, paths, at).await,
    }
}

/// One pull request of a group cannot be applied to any commit. It is named, so that the others
/// continue without it, with the error of git in place of paths.
async fn refused_one(
    git: &Git,
    build: &BuildCandidate,
    words: String,
    at: Timestamp,
) -> Result<Built, HostError> {
    for change in &build.changes {
        let alone = std::slice::from_ref(change);
        match apply(git, build.target_head.as_str(), alone, build.method, at).await {
            Err(HostError::Rejected { words }) => {
                let with = ConflictWith::Target;
                return Ok(Built::Conflict { pr: change.pr, with, paths: vec![words] });
            }
            applied => drop(applied?),
        }
    }
    Err(HostError::Rejected { words })
}

/// The pull requests ahead conflict, although they share no target: the group waits for the later
/// of the two.
fn before_conflicts(
    build: &BuildCandidate,
    change: usize,
    paths: Vec<String>,
) -> Result<Built, HostError> {
    match (build.before.get(change), build.changes.first()) {
        (Some((run, _)), Some(first)) => {
            Ok(Built::Conflict { pr: first.pr, with: ConflictWith::Ahead(*run), paths })
        }
        (None, _) | (_, None) => {
            Err(HostError::Unavailable { words: "a conflict without a conflicting change".into() })
        }
    }
}

/// The reports on the head of the only pull request, if its own commit stands on the target
/// and has the candidate's tree.
async fn head_checks(
    git: &Git,
    build: &BuildCandidate,
    tree: &TreeId,
    at: Timestamp,
) -> Result<Vec<CheckReport>, HostError> {
    let Some(change) = build.changes.first().filter(|_| build.direct) else {
        return Ok(Vec::new());
    };
    let head = change.head.as_str();
    if git.tree(head).await? != *tree || !git.is_ancestor(build.target_head.as_str(), head).await? {
        return Ok(Vec::new());
    }
    statuses::read(git, head, at).await
}

/// Finds with whom a change conflicts: with the target itself, with the first candidate ahead on
/// which it cannot be put any more, or with one before it in its own group.
async fn conflict(
    git: &Git,
    build: &BuildCandidate,
    change: usize,
    paths: Vec<String>,
    at: Timestamp,
) -> Result<Built, HostError> {
    let Some(changed) = build.changes.get(change) else {
        return Err(HostError::Unavailable {
            words: "a conflict without a conflicting change".into(),
        });
    };
    let alone = std::slice::from_ref(changed);
    let conflicts = async |base: &str| {
        let applied = apply(git, base, alone, build.method, at).await?;
        Ok::<_, HostError>(match applied {
            Applied::Conflict { paths, .. } => Some(paths),
            Applied::Commit { .. } => None,
        })
    };
    let pr = changed.pr;
    if let Some(paths) = conflicts(build.target_head.as_str()).await? {
        return Ok(Built::Conflict { pr, with: ConflictWith::Target, paths });
    }
    for ahead in &build.ahead {
        if let Some(paths) = conflicts(ahead.sha.as_str()).await? {
            return Ok(Built::Conflict { pr, with: ConflictWith::Ahead(ahead.run), paths });
        }
    }
    for other in build.changes.iter().take(change) {
        let both = [other.clone(), changed.clone()];
        let target = build.target_head.as_str();
        if let Applied::Conflict { change: 1, paths } =
            apply(git, target, &both, build.method, at).await?
        {
            return Ok(Built::Conflict { pr, with: ConflictWith::Group(other.pr), paths });
        }
    }
    // It takes more than one other change: the nearest before it is named.
    let with = match change.checked_sub(1).and_then(|before| build.changes.get(before)) {
        Some(before) => ConflictWith::Group(before.pr),
        None => build.ahead.last().map_or(ConflictWith::Target, |it| ConflictWith::Ahead(it.run)),
    };
    Ok(Built::Conflict { pr, with, paths })
}

/// Puts changes on a commit, one after the other. One that adds nothing gets no commit.
pub(crate) async fn apply(
    git: &Git,
    base: &str,
    changes: &[Change],
    method: MergeMethod,
    at: Timestamp,
) -> Result<Applied, HostError> {
    let (mut tip, mut tree, mut empty) = (base.to_owned(), None, Vec::new());
    for (number, change) in changes.iter().enumerate() {
        let applied = match method {
            MergeMethod::Squash => merged(git, (&tip, tree), change, false, at).await?,
            MergeMethod::MergeCommit => merged(git, (&tip, tree), change, true, at).await?,
            MergeMethod::Rebase => replayed(git, &tip, change, at).await?,
        };
        match applied {
            Ok(made) => {
                if made.commit == tip {
                    empty.push(change.pr);
                }
                (tip, tree) = (made.commit, made.tree);
            }
            Err(paths) => return Ok(Applied::Conflict { change: number, paths }),
        }
    }
    let tree = tree.map(|tree| parse_tree(&tree)).transpose()?;
    Ok(Applied::Commit { commit: tip, tree, empty })
}

/// A commit, and its tree if it was made just now.
struct Made {
    commit: String,
    tree: Option<String>,
}

/// A new object, or the conflicting paths.
pub(crate) type Outcome<T> = Result<T, Vec<String>>;

async fn merged(
    git: &Git,
    (tip, tip_tree): (&str, Option<String>),
    change: &Change,
    both_parents: bool,
    at: Timestamp,
) -> Result<Outcome<Made>, HostError> {
    let head = change.head.as_str();
    let tree = match merge_trees(git, tip, head).await? {
        Ok(tree) => tree,
        Err(paths) => return Ok(Err(paths)),
    };
    let tip_tree = match tip_tree {
        Some(tree) => tree,
        None => git.tree(tip).await?.to_string(),
    };
    if tree == tip_tree {
        return Ok(Ok(Made { commit: tip.to_owned(), tree: Some(tree) }));
    }
    let author = git.author(head).await?;
    let (parents, text) = if both_parents {
        (vec![tip, head], message(change))
    } else {
        let commits = authored(git, tip, head).await?;
        (vec![tip], squash_message(change, &author.email, &commits))
    };
    let commit = git.commit_tree(&tree, &parents, &format!("{text}\n"), &author, at).await?;
    Ok(Ok(Made { commit, tree: Some(tree) }))
}

/// The commits that a head adds to a commit, oldest first; none where it adds only itself, whose
/// author is known.
async fn authored(git: &Git, base: &str, head: &str) -> Result<Vec<Authored>, HostError> {
    if let [parent] = git.parents(head).await?.as_slice()
        && git.is_fork_point(parent, base).await?
    {
        return Ok(Vec::new());
    }
    let range = format!("{base}..{head}");
    let most = format!("--max-count={MAX_COMMITS}");
    let format = "--format=%an%x00%ae%x00%B%x00%x00";
    let args = ["log", "--no-merges", &most, format, &range];
    // A few bytes of a pack can be many of a message. Then there are no co-authors.
    let Some(printed) = git.ok_up_to(&args, MAX_MESSAGES).await? else { return Ok(Vec::new()) };
    let text = String::from_utf8_lossy(&printed);
    let text = text.trim_end_matches('\n');
    let mut commits: Vec<Authored> = text
        .split("\0\0\n")
        .filter_map(|commit| {
            let mut parts = commit.trim_end_matches('\0').splitn(3, '\0');
            let mut next = || parts.next().map(|part| part.trim().to_owned());
            Some(Authored { name: next()?, email: next()?, message: next()? })
        })
        .collect();
    commits.reverse();
    Ok(commits)
}

/// Replays the commits of a pull request on a commit, oldest first. Merges in between are skipped,
/// as git itself does; so are commits that no longer change anything.
async fn replayed(
    git: &Git,
    tip: &str,
    change: &Change,
    at: Timestamp,
) -> Result<Outcome<Made>, HostError> {
    let head = change.head.as_str();
    let range = format!("{tip}..{head}");
    let list = git.ok(&["rev-list", "--reverse", "--topo-order", "--no-merges", &range]).await?;
    let mut made = Made { commit: tip.to_owned(), tree: None };
    for commit in list.text().lines() {
        match picked(git, &made.commit, commit, at).await? {
            Ok(next) => made = next,
            Err(paths) => return Ok(Err(paths)),
        }
    }
    Ok(Ok(made))
}

/// Puts one commit on another. The merge base must be the commit's own parent: a helper commit
/// that has the tip's tree and that parent makes it so, also with versions of git without an option
/// for the base.
async fn picked(
    git: &Git,
    tip: &str,
    commit: &str,
    at: Timestamp,
) -> Result<Outcome<Made>, HostError> {
    let author = git.author(commit).await?;
    let tip_tree = git.tree(tip).await?;
    let parents = git.parents(commit).await?;
    let Some(parent) = parents.first() else {
        return Err(HostError::Rejected {
            words: format!("could not replay commit {commit}: it has no parent"),
        });
    };
    let helper = git.commit_tree(tip_tree.as_str(), &[parent], "helper\n", &author, at).await?;
    let tree = match merge_trees(git, &helper, commit).await? {
        Ok(tree) => tree,
        Err(paths) => return Ok(Err(paths)),
    };
    if tree == tip_tree.as_str() {
        return Ok(Ok(Made { commit: tip.to_owned(), tree: Some(tree) }));
    }
    let args = ["show", "-s", "--format=%B", commit];
    let message = git.call_with_content(&args).await?.succeeded()?.text();
    let commit = git.commit_tree(&tree, &[tip], &message, &author, at).await?;
    Ok(Ok(Made { commit, tree: Some(tree) }))
}

/// The tree of a merge of two commits, or the conflicting paths.
pub(crate) async fn merge_trees(
    git: &Git,
    ours: &str,
    theirs: &str,
) -> Result<Outcome<String>, HostError> {
    let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
    let done = git.call_with_content(&args).await?;
    let text = String::from_utf8_lossy(&done.stdout);
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    let tree = parts.next().unwrap_or_default().trim().to_owned();
    match done.code {
        Some(0) => Ok(Ok(tree)),
        // For a missing commit git prints the same error, but has no tree.
        Some(1) if !tree.is_empty() && done.complaints().next().is_none() => {
            let (most, longest) = MAX_PATHS;
            let cut = |path: &str| path.chars().take(longest).collect::<String>();
            let mut paths: Vec<String> = parts.map(cut).collect();
            paths.dedup();
            paths.truncate(most);
            Ok(Err(paths))
        }
        Some(128) if done.complaints().any(|line| line.contains(UNRELATED)) => {
            let words = format!("commit {theirs} has no common history with the target");
            Err(HostError::Rejected { words })
        }
        Some(_) | None => Err(git.missing(&[theirs, ours], done.trouble()).await),
    }
}
