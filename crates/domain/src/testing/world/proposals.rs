//! What authors and reviewers do with pull requests on the host.

use crate::ids::BranchName;
use crate::queue::{Dependency, Fact, Mergeability, PullRequestState};

use super::{Proposed, World};

impl World {
    /// Changes a pull request on the host and queues the fact of its next read.
    pub(super) fn change(&mut self, pr: u32, change: impl FnOnce(&mut Proposed)) {
        self.pull_request(pr);
        if let Some(proposed) = self.proposed.get_mut(&pr) {
            change(proposed);
        }
        let fact = Fact::PullRequestSeen {
            pull_request: Box::new(self.pull_request(pr)),
            read_at: self.at,
        };
        self.facts.push(fact);
    }

    /// Pushes a new version of an open pull request.
    pub fn push(&mut self, pr: u32) {
        self.change(pr, |it| it.version += u32::from(it.state == PullRequestState::Open));
    }

    /// Closes a pull request, or opens it again.
    pub fn close_or_reopen(&mut self, pr: u32) {
        self.change(pr, |it| {
            it.state = match it.state {
                PullRequestState::Open => PullRequestState::Closed,
                PullRequestState::Closed => PullRequestState::Open,
                PullRequestState::Merged => PullRequestState::Merged,
            };
        });
    }

    /// Changes the base of a pull request, or changes it back.
    pub fn retarget(&mut self, pr: u32) {
        let main = self.queue.header.branch.clone();
        self.change(pr, |it| {
            it.base = if it.base == main {
                BranchName::new("other").expect("a branch name")
            } else {
                main
            };
        });
    }

    /// Converts a pull request to a draft, or back.
    pub fn redraft(&mut self, pr: u32) {
        self.change(pr, |it| it.draft = !it.draft);
    }

    /// Changes the labels of a pull request.
    pub fn relabel(&mut self, pr: u32, labels: Vec<String>) {
        self.change(pr, |it| it.labels = labels);
    }

    /// Changes the mergeability of a pull request.
    pub fn judge(&mut self, pr: u32, mergeability: Mergeability) {
        self.change(pr, |it| it.mergeability = mergeability);
    }

    /// Changes what the description of a pull request names as dependencies.
    pub fn depend(&mut self, pr: u32, on: impl IntoIterator<Item = Dependency>) {
        let depends_on = on.into_iter().collect();
        self.change(pr, |it| it.depends_on = depends_on);
    }
}
