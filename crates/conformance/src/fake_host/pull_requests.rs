//! Actions of users on the fake host: open, push, edit, read.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha};
use signalbox_domain::queue::{
    CheckReport, Dependency, Mergeability, PullRequest, PullRequestState,
};

use super::FakeHost;
use super::model::{Repo, Tree};

impl FakeHost {
    /// Adds a repository with a branch `main` of these files.
    pub fn add_repository(&self, name: &RepoName, files: &[(&str, &str)]) {
        let mut state = self.state();
        let repo = state.repos.entry(name.clone()).or_default();
        let root = repo.commit(changed(Tree::new(), files), Vec::new(), "first commit");
        repo.move_branch(&branch("main"), &root);
    }

    /// Opens a pull request that writes these files on top of a branch's head, from a branch
    /// `change-<number>`. An empty content deletes the file.
    pub fn open(&self, name: &RepoName, base: &str, files: &[(&str, &str)]) -> PrNumber {
        self.with(name, |repo| {
            let base = branch(base);
            let on = repo.branches.get(&base).expect("the base branch exists").clone();
            let last = repo.pull_requests.last_key_value().map_or(0, |(last, _)| last.0);
            let number = PrNumber(last + 1);
            let title = format!("Change {number}");
            let head = repo.commit(changed(repo.tree(&on), files), vec![on], &title);
            let head_branch = branch(&format!("change-{number}"));
            repo.move_branch(&head_branch, &head);
            repo.pull_requests.insert(
                number,
                PullRequest {
                    number,
                    title,
                    body: String::new(),
                    depends_on: Vec::new(),
                    author: "mona".to_owned(),
                    head,
                    head_branch: Some(head_branch.to_string()),
                    base,
                    state: PullRequestState::Open,
                    merged_as: None,
                    draft: false,
                    mergeability: Mergeability::Mergeable,
                    url: format!("https://git.test/{}/{}/pull/{number}", name.owner, name.name),
                    labels: Vec::new(),
                },
            );
            number
        })
    }

    /// Reports a check on a pull request's own head.
    pub fn report_on_head(&self, name: &RepoName, pr: PrNumber, check: CheckReport) {
        self.with(name, |repo| {
            let shown = repo.pull_requests.get(&pr).expect("the pull request exists");
            repo.head_checks.entry(shown.head.clone()).or_default().push(check);
        });
    }

    /// Pushes another commit to a pull request; returns its new head.
    pub fn push(&self, name: &RepoName, pr: PrNumber, files: &[(&str, &str)]) -> Sha {
        self.with(name, |repo| {
            let before = repo.pull_requests.get(&pr).expect("the pull request exists").clone();
            let tree = changed(repo.tree(&before.head), files);
            let head = repo.commit(tree, vec![before.head], "one more change");
            if let Some(from) = &before.head_branch {
                repo.move_branch(&branch(from), &head);
            }
            if let Some(kept) = repo.pull_requests.get_mut(&pr) {
                kept.head = head.clone();
            }
            head
        })
    }

    /// Pushes a commit to a branch, outside the queue; returns the branch's new head.
    pub fn push_branch(&self, name: &RepoName, to: &str, files: &[(&str, &str)]) -> Sha {
        self.with(name, |repo| {
            let to = branch(to);
            let before = repo.branches.get(&to).cloned();
            let tree = before.as_ref().map(|sha| repo.tree(sha)).unwrap_or_default();
            let head = repo.commit(changed(tree, files), before.into_iter().collect(), "pushed");
            repo.move_branch(&to, &head);
            head
        })
    }

    /// Adds a test branch that is orphaned or belongs to another server.
    pub fn leave_test_branch(&self, name: &RepoName, left: &str) {
        self.push_branch(name, left, &[("left", left)]);
        self.with(name, |repo| repo.test_branches.insert(branch(left)));
    }

    /// Changes a pull request: closes it, converts it to a draft, and so on.
    pub fn edit(&self, name: &RepoName, pr: PrNumber, change: impl FnOnce(&mut PullRequest)) {
        self.with(name, |repo| {
            let kept = repo.pull_requests.get_mut(&pr).expect("the pull request exists");
            change(kept);
            kept.depends_on = Dependency::read(&kept.body, name, false);
        });
    }

    /// A pull request on the host.
    pub fn shown(&self, name: &RepoName, pr: PrNumber) -> PullRequest {
        self.find(name, pr).expect("it exists")
    }

    /// A pull request on the host, if it exists.
    pub fn find(&self, name: &RepoName, pr: PrNumber) -> Option<PullRequest> {
        self.with(name, |repo| repo.pull_requests.get(&pr).cloned())
    }

    /// The files of a branch; `None` if it does not exist.
    pub fn files(&self, name: &RepoName, of: &str) -> Option<Tree> {
        self.with(name, |repo| repo.branches.get(&branch(of)).map(|sha| repo.tree(sha)))
    }

    /// The files of all past heads of a branch, oldest first, to check that the target was never
    /// red.
    pub fn past_files(&self, name: &RepoName, of: &str) -> Vec<Tree> {
        let of = branch(of);
        self.with(name, |repo| {
            repo.moves.iter().filter(|(at, _)| *at == of).map(|(_, sha)| repo.tree(sha)).collect()
        })
    }

    pub(super) fn with<T>(&self, name: &RepoName, action: impl FnOnce(&mut Repo) -> T) -> T {
        let mut state = self.state();
        action(state.repos.get_mut(name).expect("the repository was added"))
    }
}

fn branch(name: &str) -> BranchName {
    BranchName::new(name).expect("a valid branch name")
}

fn changed(mut tree: Tree, files: &[(&str, &str)]) -> Tree {
    for (path, content) in files {
        if content.is_empty() {
            tree.remove(*path);
        } else {
            tree.insert((*path).to_owned(), (*content).to_owned());
        }
    }
    tree
}
