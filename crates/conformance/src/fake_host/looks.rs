//! What a test wants to know of the host, past its port: nothing here is a call that can fail.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha};
use signalbox_domain::ports::Head;
use signalbox_domain::queue::{MergeMethod, PullRequestState};

use super::FakeHost;
use super::model::Tree;

impl FakeHost {
    /// Drops all planned failures that have not been met.
    pub fn forget_failures(&self) {
        self.state().faults.forget();
    }

    /// Where a branch is. `None` when there is no such branch.
    pub fn tip(&self, name: &RepoName, of: &BranchName) -> Option<Head> {
        self.with(name, |repo| repo.branches.get(of).map(|sha| repo.head(sha)))
    }

    /// The files of a commit; none when there is no such commit.
    pub fn files_at(&self, name: &RepoName, sha: &Sha) -> Tree {
        self.with(name, |repo| repo.tree(sha))
    }

    /// Everywhere that a branch has been, oldest first.
    pub fn past_heads(&self, name: &RepoName, of: &BranchName) -> Vec<Sha> {
        self.with(name, |repo| {
            repo.moves.iter().filter(|(at, _)| at == of).map(|(_, sha)| sha.clone()).collect()
        })
    }

    /// The branches under test that are there.
    pub fn test_branches_there(&self, name: &RepoName) -> Vec<BranchName> {
        self.with(name, |repo| repo.test_branches.iter().cloned().collect())
    }

    /// Merges an open pull request into its base by hand, past the queue, if it merges and
    /// `accept` likes the files that the base then has. Returns the base's new head.
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
