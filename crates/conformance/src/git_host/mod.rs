//! The contract of a git host. Each property is an async function over a [`HostWorld`] with an
//! empty repository; [`crate::git_host_conformance`] makes a test of each.

mod authors;
mod building;
mod landing;
mod merging;
mod reading;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, PrNumber, RunId, Sha};
use signalbox_domain::ports::{Built, GitHost, LandAnswer, Repository};
use signalbox_domain::queue::{BuildCandidate, Candidate, Change, Land, MergeMethod, PullRequest};
use uuid::Uuid;

use crate::git_place::GitPlace;

pub use authors::a_squash_names_all_of_its_authors;
pub use building::*;
pub use landing::*;
pub use merging::merges_equal_those_of_git;
pub use reading::*;

/// Makes one test of each property. The expression is evaluated in an async block and creates a
/// world with an empty repository.
#[macro_export]
macro_rules! git_host_conformance {
    ($fresh:expr) => {
        $crate::git_host_conformance!(@tests $fresh;
            merges_equal_those_of_git,
            each_merge_method_gives_its_own_history_and_the_same_tree,
            a_conflict_names_the_first_conflicting_candidate_ahead,
            a_candidate_combines_lanes_that_have_not_landed,
            checks_of_an_up_to_date_head_are_returned,
            a_missing_commit_is_an_error_and_leaves_no_branch,
            a_landing_moves_the_target_to_the_candidate_or_not_at_all,
            a_target_with_the_same_tree_in_another_commit_counts_as_unmoved,
            groups_land_together,
            lanes_land_beside_each_other_unless_they_conflict,
            landings_are_contained_in_their_descendants,
            a_change_that_adds_nothing_gets_no_commit,
            names_are_never_interpreted_as_options,
            pull_requests_are_read_as_they_are_now,
            changed_paths_are_those_of_the_pull_request,
            merges_hide_no_changed_path,
            branches_are_deleted_only_at_their_expected_heads,
        );
    };
    (@tests $fresh:expr; $($name:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let world = { $fresh.await };
                $crate::git_host::$name(&world).await;
            }
        )+
    };
}

/// A host with an empty repository, and the actions of its users.
#[async_trait]
pub trait HostWorld: Sync {
    /// The repository behind the host, and a clone.
    fn place(&self) -> &GitPlace;

    /// The host.
    fn host(&self) -> &dyn GitHost;

    /// The repository, as the host knows it.
    fn repository(&self) -> &Repository;

    /// Tells the host that a push moved a branch.
    fn pushed(&self, branch: &str);

    /// Opens a pull request from a pushed branch to `main`.
    async fn open(&self, branch: &str) -> PrNumber;

    /// Closes a pull request.
    async fn close(&self, pr: PrNumber);

    /// Whether the host reports exactly git's conflicting paths.
    fn knows_conflicting_paths(&self) -> bool;

    /// Reports a successful check on a commit.
    fn report(&self, commit: &Sha, name: &str);

    /// Closes the pull requests of a completed landing, on hosts that do not mark them as merged
    /// automatically.
    async fn close_landed(&self, _order: &Land, _landed: &Sha) {}
}

/// Helpers of the properties.
#[async_trait]
trait Acts: HostWorld {
    fn push(&self, branch: &str) -> Sha {
        let sha = self.place().push(branch);
        self.pushed(branch);
        sha
    }

    /// Creates and pushes a branch with one commit on `from`.
    fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> Sha {
        self.place().branch(name, from, files);
        self.push(name)
    }

    /// Commits files to `main` and pushes it.
    fn base(&self, files: &[(&str, &str)]) -> Sha {
        self.place().commit(files, "base");
        self.push("main")
    }

    /// Opens a pull request from a new branch.
    async fn change(&self, name: &str, files: &[(&str, &str)]) -> Change {
        let head = self.branch(name, "main", files);
        let pr = self.open(name).await;
        change(pr, &head)
    }

    async fn build(&self, build: &BuildCandidate) -> Built {
        self.host().build_candidate(self.repository(), build).await.expect("an answer")
    }

    async fn candidate(&self, build: &BuildCandidate) -> Candidate {
        match self.build(build).await {
            Built::Candidate { candidate, .. } => candidate,
            other @ (Built::Conflict { .. } | Built::MergedBefore { .. } | Built::Mismatch(_)) => {
                panic!("{other:?}")
            }
        }
    }

    async fn land(&self, order: &Land) -> LandAnswer {
        self.host().land(self.repository(), order).await.expect("an answer")
    }

    async fn read(&self, pr: PrNumber) -> PullRequest {
        use signalbox_domain::ports::PullRequestQuery;
        let read = self.host().pull_request(self.repository(), &PullRequestQuery::Number(pr)).await;
        read.expect("an answer").expect("a pull request")
    }

    async fn test_branches(&self) -> Vec<String> {
        let found = self.host().test_branches(self.repository()).await.expect("branches");
        found.into_iter().map(|it| it.branch.as_str().to_owned()).collect()
    }
}

impl<W: HostWorld + ?Sized> Acts for W {}

fn change(pr: PrNumber, head: &Sha) -> Change {
    Change {
        pr,
        head: head.clone(),
        title: format!("change {pr}"),
        body: String::new(),
        author: "ada".into(),
    }
}

/// An order to build these changes on `head`.
pub fn build(head: &Sha, changes: Vec<Change>, method: MergeMethod) -> BuildCandidate {
    let run = RunId(Uuid::new_v4());
    BuildCandidate {
        run,
        target: BranchName::new("main").expect("a branch"),
        target_head: head.clone(),
        base: head.clone(),
        before: Vec::new(),
        direct: false,
        ahead: Vec::new(),
        changes,
        method,
        branch: BranchName::new(format!("signalbox-merge/pr-1/{run}")).expect("a branch"),
    }
}

/// An order to land what was built.
pub fn land(build: &BuildCandidate, candidate: &Candidate) -> Land {
    Land {
        run: build.run,
        target: build.target.clone(),
        expected: build.target_head.clone(),
        candidate: candidate.clone(),
        exact: true,
        changes: build.changes.clone(),
        method: build.method,
    }
}
