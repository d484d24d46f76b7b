//! The scratch branches that this server uses, and the repositories that they are in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quick_cache::sync::Cache;
use signalbox_domain::ids::{RepoName, Sha};
use signalbox_domain::time::{Span, Timestamp};

/// Minutes for which an unused temporary branch is kept for the next candidate.
const KEPT_MINUTES: u32 = 10;
/// The most test branches whose places are remembered.
const REMEMBERED: usize = 10_000;

/// The temporary branches in use, and the free ones.
#[derive(Default)]
pub(crate) struct ScratchBranches(Mutex<State>);

#[derive(Default)]
struct State {
    used: BTreeSet<String>,
    /// The branch, its repository, and since when it is free.
    free: BTreeMap<String, (RepoName, Timestamp)>,
}

impl ScratchBranches {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free one of that repository.
    pub(crate) fn take(&self, repo: &RepoName) -> Option<String> {
        let mut state = self.state();
        let found = state.free.iter().find(|(_, (of, _))| of == repo).map(|it| it.0.clone())?;
        state.free.remove(&found);
        Some(found)
    }

    pub(crate) fn begin(&self, branch: &str) {
        self.state().used.insert(branch.to_owned());
    }

    /// Marks a branch as no longer used, and as free if it exists.
    pub(crate) fn end(&self, branch: &str, free: Option<(&RepoName, Timestamp)>) {
        let mut state = self.state();
        state.used.remove(branch);
        if let Some((repo, now)) = free {
            state.free.insert(branch.to_owned(), (repo.clone(), now));
        }
    }

    /// Whether it is in use, or may soon be again. One that may not is forgotten.
    pub(crate) fn is_kept(&self, branch: &str, now: Timestamp) -> bool {
        let mut state = self.state();
        let kept = Span::minutes(KEPT_MINUTES);
        if state.free.get(branch).is_some_and(|(_, since)| now.since(*since) >= kept) {
            state.free.remove(branch);
        }
        state.used.contains(branch) || state.free.contains_key(branch)
    }
}

/// The commits of test branches. Only this server names branches like this.
pub(crate) struct Places(Cache<(RepoName, String), String>);

impl Default for Places {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Places {
    pub(crate) fn is_at(&self, repo: &RepoName, branch: &str, commit: &str) {
        self.0.insert((repo.clone(), branch.to_owned()), commit.to_owned());
    }

    pub(crate) fn was_put(&self, repo: &RepoName, branch: &str, at: &Sha) -> bool {
        let place = (repo.clone(), branch.to_owned());
        self.0.get(&place).is_some_and(|commit| commit == at.as_str())
    }

    pub(crate) fn is_gone(&self, repo: &RepoName, branch: &str) {
        self.0.remove(&(repo.clone(), branch.to_owned()));
    }
}
