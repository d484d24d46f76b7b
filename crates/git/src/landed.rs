//! The record of landings in the repository itself: a ref for each head that landed on a
//! branch, which names the commit that it landed with. It is set together with the branch, so it
//! holds whatever becomes of the database.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::{BranchName, Sha};
use signalbox_domain::ports::{HostError, Landed};
use signalbox_domain::queue::{Change, Land, MergeMethod};

use crate::git::{Git, parse_sha};

/// Below it: the target branch, and the head.
const NAMESPACE: &str = "refs/signalbox/landed";

fn name(target: &BranchName, head: &Sha) -> String {
    format!("{NAMESPACE}/{target}/{head}")
}

/// The commit that a head landed with on a branch; `None` when it did not land there.
pub(crate) async fn commit(
    git: &Git,
    target: &BranchName,
    head: &Sha,
) -> Result<Option<Sha>, HostError> {
    let found = git.tip(&name(target, head)).await?;
    found.map(|commit| parse_sha(&commit)).transpose()
}

/// The first of these changes that has landed on the branch before.
pub(crate) async fn first<'a>(
    git: &Git,
    target: &BranchName,
    changes: &'a [Change],
) -> Result<Option<&'a Change>, HostError> {
    let names: Vec<String> = changes.iter().map(|change| name(target, &change.head)).collect();
    let found = objects(git, &names).await?;
    Ok(changes.iter().zip(&names).find(|(_, name)| found.contains_key(*name)).map(|(it, _)| it))
}

/// The refs of a landing that moves the target to that commit, and where they point.
pub(crate) async fn refs(
    git: &Git,
    land: &Land,
    commit: &str,
) -> Result<Vec<(String, String)>, HostError> {
    let commits = match (land.changes.as_slice(), land.method) {
        ([_], _) | (_, MergeMethod::Rebase) => Vec::new(),
        (_, MergeMethod::Squash | MergeMethod::MergeCommit) => {
            let range = format!("{}..{commit}", land.expected);
            let list = git.ok(&["rev-list", "--reverse", "--first-parent", &range]).await?.text();
            list.lines().map(ToOwned::to_owned).collect()
        }
    };
    // Each has its own commit, unless some have none or several.
    let own = |at: usize| match commits.get(at) {
        Some(own) if commits.len() == land.changes.len() => own.clone(),
        Some(_) | None => commit.to_owned(),
    };
    let changes = land.changes.iter().enumerate();
    Ok(changes.map(|(at, change)| (name(&land.target, &change.head), own(at))).collect())
}

/// Remembers heads that are on the branch, as of that commit, unless they are remembered already.
pub(crate) async fn remember(
    git: &Git,
    target: &BranchName,
    heads: &[&Sha],
    commit: &str,
) -> Result<(), HostError> {
    for head in heads {
        let name = name(target, head);
        if git.tip(&name).await?.is_none() {
            git.move_ref(&name, commit, None, "signalbox: landed").await?;
        }
    }
    Ok(())
}

/// Which landings the branch contains when its head is that commit.
pub(crate) async fn contained(
    git: &Git,
    target: &BranchName,
    head: &Sha,
    landings: &[Landed],
) -> Result<Vec<bool>, HostError> {
    let own_name = |landed: &Landed| name(target, &landed.head);
    let names: Vec<String> =
        landings.iter().flat_map(|it| [own_name(it), it.commit.as_str().to_owned()]).collect();
    let known = objects(git, &names).await?;
    let commit_of =
        |it: &Landed| known.get(&own_name(it)).or_else(|| known.get(it.commit.as_str()));
    let commits: BTreeSet<&String> = landings.iter().filter_map(commit_of).collect();
    let list = lines(commits);
    let missing = git.call_with(&["rev-list", "--stdin"], &format!("{list}^{head}\n")).await?;
    if missing.code != Some(0) {
        let words = format!("could not read the history of {target}: {}", missing.stderr.trim());
        return Err(HostError::Unavailable { words });
    }
    let text = missing.text();
    let missing: BTreeSet<&str> = text.lines().collect();
    let is_there = |it| commit_of(it).is_some_and(|commit| !missing.contains(commit.as_str()));
    Ok(landings.iter().map(is_there).collect())
}

fn lines<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut text = String::new();
    for name in names {
        text.push_str(name);
        text.push('\n');
    }
    text
}

/// The objects of these names; names without an object are omitted.
async fn objects(git: &Git, names: &[String]) -> Result<BTreeMap<String, String>, HostError> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    if let Some(found) = git.named(names).await {
        let pairs = names.iter().zip(found);
        return Ok(pairs.filter_map(|(name, object)| Some((name.clone(), object?))).collect());
    }
    let done = git.call_with(&["cat-file", "--batch-check=%(objectname)"], &lines(names)).await?;
    if done.code != Some(0) {
        let words = format!("git cat-file: {}", done.stderr.trim());
        return Err(HostError::Unavailable { words });
    }
    let text = done.text();
    let answers = names.iter().zip(text.lines());
    Ok(answers
        .filter(|(_, answer)| !answer.contains(' '))
        .map(|(name, object)| (name.clone(), object.to_owned()))
        .collect())
}
