//! Inspection of the fake host by tests: these methods never fail and count as no calls.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha};
use signalbox_domain::ports::Head;
use signalbox_domain::queue::{MergeMethod, PullRequestState};

use super::FakeHost;
use super::model::Tree;

impl FakeHost {
    /// Drops all planned failures.
    pub fn forget_failures(&self) {
        self.state().faults.forget();
    }

    /// The head of a branch; `None` if it does not exist.
    pub fn tip(&self, name: &RepoName, of: &BranchName) -> Option<Head> {
        self.with(name, |repo| repo.branches.get(of).map(|sha| repo.head(sha)))
    }

    /// The files of a commit; empty if it does not exist.
    pub fn files_at(&self, name: &RepoName, sha: &Sha) -> Tree {
        self.with(name, |repo| repo.tree(sha))
    }

    /// All past heads of a branch, oldest first.
    pub fn past_heads(&self, name: &RepoName, of: &BranchName) -> Vec<Sha> {
        self.with(name, |repo| {
            repo.moves.iter().filter(|(at, _)| at == of).map(|(_, sha)| sha.clone()).collect()
        })
    }

    /// The existing test branches.
    pub fn test_branches_there(&self, name: &RepoName) -> Vec<BranchName> {
        self.with(name, |repo| repo.test_branches.iter().cloned().collect())
    }

    /// Merges an open pull request into its base, outside the queue, if it has no conflict and
    /// `accept` returns `true` for the resulting files. Returns the base's new head.
    pub fn merge_by_hand(
        &self,
        name: &RepoName,
        pr: PrNumber,
        accept: impl FnOnce(&Tree) -> bool,
    ) -> Option<Sha> {
        self.with(name, |repo| {
            let open = |state| state == PullRequestState::Open;
            let merged = repo.pull_requests.get(&pr).filter(|it| open(it.state))?.clone();
            let base = repo.branches.get(&merged.base)?.clone();
            let sha = repo.put(&merged.head, &base, MergeMethod::Squash, &merged.title).ok()?;
            if !accept(&repo.tree(&sha)) {
                return None;
            }
            repo.move_branch(&merged.base, &sha);
            repo.pull_requests.get_mut(&pr)?.state = PullRequestState::Merged;
            Some(sha)
        })
    }
}
