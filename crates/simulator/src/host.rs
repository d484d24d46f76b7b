//! The git host of a simulation: it knows what every commit contains.

use signalbox_domain::ids::{InvalidName, Sha, TreeId};
use signalbox_domain::queue::Candidate;

use crate::Stream;
use crate::random::mixed;

/// A commit: what it adds to its parent.
struct Commit {
    parent: Option<usize>,
    added: Vec<usize>,
    /// Depends on all changes that it contains, and not on their order.
    content: u64,
    fails: bool,
    /// How many changes had merged when it was the target's head; `None` before.
    merged: Option<usize>,
}

/// The commits of a repository, and its target branch.
pub(crate) struct Host<'a> {
    stream: &'a Stream,
    commits: Vec<Commit>,
    target: usize,
    /// Each change's place among the merged ones.
    merged: Vec<Option<usize>>,
    count: usize,
}

impl<'a> Host<'a> {
    pub(crate) fn new(stream: &'a Stream) -> Self {
        let root =
            Commit { parent: None, added: Vec::new(), content: 0, fails: false, merged: Some(0) };
        let merged = vec![None; stream.changes.len()];
        Self { stream, commits: vec![root], target: 0, merged, count: 0 }
    }

    pub(crate) fn target(&self) -> Result<Candidate, InvalidName> {
        self.named(self.target)
    }

    fn named(&self, at: usize) -> Result<Candidate, InvalidName> {
        let content = self.commits.get(at).map_or(0, |commit| commit.content);
        let sha = Sha::new(format!("{at:040x}"))?;
        Ok(Candidate { sha, tree: TreeId::new(format!("{content:040x}"))? })
    }

    /// Builds a commit with these changes on a base.
    pub(crate) fn build(
        &mut self,
        base: &Sha,
        added: Vec<usize>,
    ) -> Result<Candidate, InvalidName> {
        let base = place(base);
        let parent = self.commits.get(base);
        let (mut content, fails) = parent.map_or((0, false), |it| (it.content, it.fails));
        for change in &added {
            content ^= signature(*change);
        }
        let fails = fails || added.iter().any(|change| self.spoils(base, &added, *change));
        self.commits.push(Commit { parent: Some(base), added, content, fails, merged: None });
        self.named(self.commits.len() - 1)
    }

    /// Whether a change fails on its own or in this company.
    fn spoils(&self, base: usize, added: &[usize], change: usize) -> bool {
        self.stream.changes.get(change).is_some_and(|it| {
            it.fails || it.conflicts.iter().any(|at| added.contains(at) || self.contains(base, *at))
        })
    }

    fn contains(&self, commit: usize, change: usize) -> bool {
        let mut at = Some(commit);
        while let Some(commit) = at.and_then(|at| self.commits.get(at)) {
            if let Some(merged) = commit.merged {
                return self.merged.get(change).copied().flatten().is_some_and(|it| it < merged);
            }
            if commit.added.contains(&change) {
                return true;
            }
            at = commit.parent;
        }
        false
    }

    /// Whether the tests of a commit fail because of its changes.
    pub(crate) fn fails(&self, sha: &Sha) -> bool {
        self.commits.get(place(sha)).is_none_or(|commit| commit.fails)
    }

    /// Depends on the changes that a commit contains.
    pub(crate) fn content(&self, sha: &Sha) -> u64 {
        self.commits.get(place(sha)).map_or(0, |commit| commit.content)
    }

    /// Whether a change is valid: it passes on its own and conflicts with nothing on the
    /// target.
    pub(crate) fn is_valid(&self, change: usize) -> bool {
        let merged = |at: &usize| self.merged.get(*at).is_some_and(Option::is_some);
        let stated = self.stream.changes.get(change);
        stated.is_some_and(|it| !it.fails && !it.conflicts.iter().any(merged))
    }

    /// Whether a commit is the target with exactly these changes.
    pub(crate) fn is_target_with(&self, sha: &Sha, changes: &[usize]) -> bool {
        let target = self.commits.get(self.target).map_or(0, |commit| commit.content);
        let wanted = changes.iter().fold(target, |content, change| content ^ signature(*change));
        self.content(sha) == wanted
    }

    /// Moves the target to a commit that adds these changes to it.
    pub(crate) fn land(&mut self, sha: &Sha, changes: &[usize]) {
        self.target = place(sha);
        for change in changes {
            if let Some(merged) = self.merged.get_mut(*change) {
                *merged = Some(self.count);
                self.count += 1;
            }
        }
        let count = self.count;
        if let Some(commit) = self.commits.get_mut(self.target) {
            commit.merged = Some(count);
            // Nothing looks further back than a commit that was the target's head.
            commit.added = Vec::new();
        }
    }
}

fn place(sha: &Sha) -> usize {
    usize::from_str_radix(sha.as_str().get(24..).unwrap_or_default(), 16).unwrap_or(usize::MAX)
}

fn signature(change: usize) -> u64 {
    mixed(u64::try_from(change).unwrap_or(u64::MAX).wrapping_add(1))
}
