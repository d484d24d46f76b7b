//! Composition: whether a candidate is its base with only the changes of its pull requests. A host
//! that builds candidates itself can get this wrong, and a wrong candidate may well pass its tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{Sha, TreeId};
use crate::words::words;

/// The most paths of a [`Mismatch`] and of a [`Composition`].
pub const MOST_PATHS: usize = 100;

words!(
    /// How the composition of a candidate was checked.
    CompositionCheck {
        /// The tree was computed a second time from the base and the heads, and is equal.
        Recomputed = "RECOMPUTED",
        /// The objects of the trees of base, heads and candidate were compared.
        Compared = "COMPARED",
        /// It was not checked.
        NotChecked = "NOT_CHECKED",
    }
);

/// The result of a check that found nothing wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Composition {
    /// How it was checked.
    pub check: CompositionCheck,
    /// Why it was not checked.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub why_not: Option<String>,
    /// Paths that the base and a pull request, or two pull requests, have changed, so that only the
    /// host knows the merged content; at most [`MOST_PATHS`].
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub merged_by_host: Vec<String>,
}

impl Composition {
    /// Why a landing that others made before the queue was not checked.
    pub const FOUND_ON_TARGET: &'static str = "it was on the target already, with another tree";

    /// The tree was computed a second time.
    pub const fn recomputed() -> Self {
        let check = CompositionCheck::Recomputed;
        Self { check, why_not: None, merged_by_host: Vec::new() }
    }

    /// It was not checked, for this reason.
    pub fn not_checked(why: impl Into<String>) -> Self {
        let check = CompositionCheck::NotChecked;
        Self { check, why_not: Some(why.into()), merged_by_host: Vec::new() }
    }
}

/// A commit that is not its base with the changes of its pull requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mismatch {
    /// The commit that the changes were applied to.
    pub base: Sha,
    /// The wrong commit.
    pub commit: Sha,
    /// Its tree.
    pub found: TreeId,
    /// The tree that it should have, where it was computed.
    pub expected: Option<TreeId>,
    /// The paths that differ, at most [`MOST_PATHS`].
    pub paths: Vec<String>,
}

/// A file, link or submodule of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its mode, as git writes it: `100644`.
    pub mode: String,
    /// The id of its content.
    pub id: String,
}

/// All files, links and submodules of a tree, by path.
pub type Listing = BTreeMap<String, Object>;

/// The changes of a pull request: those from `ancestor`, the merge base with the target, to `head`.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// The tree of the merge base.
    pub ancestor: &'a Listing,
    /// The tree of the head.
    pub head: &'a Listing,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Paths where the candidate is neither the base nor what a pull request made of it.
    pub wrong: Vec<String>,
    /// Paths that several sides have changed.
    pub merged_by_host: Vec<String>,
}

/// Compares a candidate with its base and the changes that were applied to it, in this order,
/// without merging any content. An object that one side alone has changed must be the one of that
/// side, with its mode; an object that no side has changed must be unchanged.
///
/// A path that several sides have changed is left to the host. So are the paths that a side has
/// added, if it has also removed one that another side has changed: git follows renames.
pub fn compare(
    base: &Listing,
    contributions: &[Contribution<'_>],
    candidate: &Listing,
) -> Comparison {
    let mut expected: BTreeMap<&str, Option<&Object>> = BTreeMap::new();
    let mut by_host: BTreeSet<&str> = BTreeSet::new();
    for Contribution { ancestor, head } in contributions {
        let mut renamed = Renamed::default();
        for (path, was, is) in differences(ancestor, head) {
            let now = expected.get(path).copied().unwrap_or_else(|| base.get(path));
            if by_host.contains(path) || now == is {
                continue;
            }
            if now == was {
                expected.insert(path, is);
                continue;
            }
            by_host.insert(path);
            renamed.by_pull_request |= is.is_none();
            renamed.by_others |= now.is_none() && was.is_some();
        }
        if renamed.by_pull_request {
            let added = differences(ancestor, head).into_iter().filter(|(_, was, _)| was.is_none());
            by_host.extend(added.map(|(path, _, _)| path));
        }
        if renamed.by_others {
            let added = base.keys().map(String::as_str).chain(expected.keys().copied());
            by_host.extend(added.filter(|path| !ancestor.contains_key(*path)));
        }
    }
    let found = differences(base, candidate);
    let mut wrong: BTreeSet<&str> = BTreeSet::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (path, was, is) in found {
        seen.insert(path);
        if expected.get(path).copied().unwrap_or(was) != is {
            wrong.insert(path);
        }
    }
    // What should have changed and has not.
    let missing =
        expected.iter().filter(|(path, to)| !seen.contains(*path) && base.get(**path) != **to);
    wrong.extend(missing.map(|(path, _)| *path));
    let is_merged =
        |path: &&&str| base.get(**path) != candidate.get(**path) || wrong.contains(*path);
    let merged: Vec<String> = by_host.iter().filter(is_merged).map(|it| (*it).to_owned()).collect();
    let wrong = wrong.into_iter().filter(|path| !by_host.contains(path));
    Comparison { wrong: wrong.map(ToOwned::to_owned).collect(), merged_by_host: merged }
}

/// Who removed a path that another side has changed.
#[derive(Default)]
struct Renamed {
    by_pull_request: bool,
    by_others: bool,
}

/// The paths in which two trees differ, with the object in each.
fn differences<'a>(
    before: &'a Listing,
    after: &'a Listing,
) -> Vec<(&'a str, Option<&'a Object>, Option<&'a Object>)> {
    let mut found = Vec::new();
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return found,
        };
        let was = if order.is_le() { old.next() } else { None };
        let is = if order.is_ge() { new.next() } else { None };
        let Some((path, _)) = was.or(is) else { return found };
        let (was, is) = (was.map(|(_, it)| it), is.map(|(_, it)| it));
        if was != is {
            found.push((path.as_str(), was, is));
        }
    }
}
