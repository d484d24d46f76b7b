//! The promises of a git host. Each property is an async function over an empty repository;
//! [`crate::git_host_conformance`] makes a test of each.

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

pub use building::*;
pub use landing::*;
pub use merging::merges_are_those_of_git_itself;
pub use reading::*;

/// Makes one test of each property. The expression gives, in an async block, a world with an empty
/// repository.
#[macro_export]
macro_rules! git_host_conformance {
    ($fresh:expr) => {
        $crate::git_host_conformance!(@tests $fresh;
            merges_are_those_of_git_itself,
            each_method_gives_its_own_history_and_the_same_tree,
            a_conflict_names_the_first_candidate_ahead_that_it_is_with,
            a_candidate_is_put_together_from_lanes_that_have_not_landed,
            what_was_reported_on_an_up_to_date_head_is_told,
            what_cannot_be_found_is_said_and_leaves_nothing_behind,
            landing_moves_the_target_to_what_was_tested_or_not_at_all,
            the_same_content_under_another_commit_is_no_other_target,
            groups_land_together,
            lanes_land_beside_each_other_and_only_where_they_do_not_meet,
            landings_are_found_where_they_are_contained,
            a_change_that_adds_nothing_gets_no_commit,
            names_are_only_names,
            pull_requests_are_read_as_they_are_now,
            branches_are_deleted_only_where_they_are_expected,
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

/// A host with an empty repository, and what people do to it.
#[async_trait]
pub trait HostWorld: Sync {
    /// The repository behind the host, and a clone.
    fn place(&self) -> &GitPlace;

    /// The host.
    fn host(&self) -> &dyn GitHost;

    /// The repository, as the host knows it.
    fn repository(&self) -> &Repository;

    /// A branch of the repository was moved by a push.
    fn pushed(&self, branch: &str);

    /// Somebody opens a pull request of a pushed branch to `main`.
    async fn open(&self, branch: &str) -> PrNumber;

    /// Somebody closes it.
    async fn close(&self, pr: PrNumber);

    /// Whether of a conflict the host tells just the paths that git could not merge.
    fn knows_conflicting_paths(&self) -> bool;

    /// Somebody reports success on a commit.
    fn report(&self, commit: &Sha, name: &str);

    /// Closes the pull requests of an order that has landed as that commit, on hosts that do not
    /// mark them as merged by themselves.
    async fn close_landed(&self, _order: &Land, _landed: &Sha) {}
}

/// What the properties do with a world.
#[async_trait]
trait Acts: HostWorld {
    fn push(&self, branch: &str) -> Sha {
        let sha = self.place().push(branch);
        self.pushed(branch);
        sha
    }

    /// A branch on `from` with one commit; pushed.
    fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> Sha {
        self.place().branch(name, from, files);
        self.push(name)
    }

    /// Files on `main`.
    fn base(&self, files: &[(&str, &str)]) -> Sha {
        self.place().commit(files, "base");
        self.push("main")
    }

    /// A pull request from a new branch.
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
            other @ (Built::Conflict { .. } | Built::MergedBefore { .. }) => panic!("{other:?}"),
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
