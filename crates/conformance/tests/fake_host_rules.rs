//! The fake host fulfils the parts of the host port's contract that tests rely on.

use std::sync::Arc;

use signalbox_conformance::fake_host::{Call, Failure, FakeHost, Tree};
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName, RunId, Sha};
use signalbox_domain::ports::{
    Built, GitHost, HostError, LandAnswer, PullRequestQuery, Repository,
};
use signalbox_domain::queue::{
    Ahead, BuildCandidate, Candidate, Change, CheckConclusion, ConflictWith, Land, MergeMethod,
    PullRequest, PullRequestState,
};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

struct Fixture {
    host: FakeHost,
    repository: Repository,
}

impl Fixture {
    fn new() -> Self {
        let name = RepoName::parse("git.test/acme/calc").expect("valid");
        let host = FakeHost::new(Arc::new(ManualClock::default()), |_| CheckConclusion::Success);
        host.add_repository(&name, &[("a", "1"), ("b", "1")]);
        let repository = Repository {
            id: RepoId(Uuid::from_u128(1)),
            org: OrgId(Uuid::from_u128(2)),
            name,
            path: None,
            created_at: Timestamp::from_unix_seconds(0),
        };
        Self { host, repository }
    }

    fn open(&self, files: &[(&str, &str)]) -> Change {
        let pr = self.host.open(&self.repository.name, "main", files);
        let shown = self.host.shown(&self.repository.name, pr);
        Change {
            pr,
            head: shown.head,
            title: shown.title,
            body: String::new(),
            author: shown.author,
        }
    }

    async fn main(&self) -> Sha {
        let head = self.host.head(&self.repository, &branch("main")).await.expect("up");
        head.expect("main exists").sha
    }

    async fn build(&self, ahead: &[(RunId, &Candidate)], change: &Change) -> Built {
        let target_head = self.main().await;
        let build = BuildCandidate {
            run: run(u128::from(change.pr.0)),
            target: branch("main"),
            base: ahead.last().map_or(&target_head, |(_, candidate)| &candidate.sha).clone(),
            target_head,
            before: Vec::new(),
            direct: false,
            ahead: ahead
                .iter()
                .map(|(run, candidate)| Ahead { run: *run, sha: candidate.sha.clone() })
                .collect(),
            changes: vec![change.clone()],
            method: MergeMethod::Squash,
            branch: branch(&format!("signalbox-merge/pr-{}", change.pr)),
        };
        self.host.build_candidate(&self.repository, &build).await.expect("up")
    }

    async fn candidate(&self, ahead: &[(RunId, &Candidate)], change: &Change) -> Candidate {
        match self.build(ahead, change).await {
            Built::Candidate { candidate, .. } => candidate,
            other @ (Built::Conflict { .. } | Built::MergedBefore { .. } | Built::Mismatch(_)) => {
                panic!("{other:?}")
            }
        }
    }

    async fn land(
        &self,
        expected: &Sha,
        candidate: &Candidate,
        change: &Change,
    ) -> Result<LandAnswer, HostError> {
        let land = Land {
            run: run(u128::from(change.pr.0)),
            target: branch("main"),
            expected: expected.clone(),
            candidate: candidate.clone(),
            exact: true,
            changes: vec![change.clone()],
            method: MergeMethod::Squash,
        };
        self.host.land(&self.repository, &land).await
    }

    fn files(&self) -> Tree {
        self.host.files(&self.repository.name, "main").expect("main exists")
    }

    fn state(&self, pr: PrNumber) -> PullRequestState {
        self.host.shown(&self.repository.name, pr).state
    }
}

fn branch(name: &str) -> BranchName {
    BranchName::new(name).expect("valid")
}

fn run(number: u128) -> RunId {
    RunId(Uuid::from_u128(number))
}

#[tokio::test]
async fn a_candidate_is_what_then_lands() {
    let bench = Fixture::new();
    let (before, change) = (bench.main().await, bench.open(&[("a", "2")]));
    let candidate = bench.candidate(&[], &change).await;
    assert_eq!(candidate, bench.candidate(&[], &change).await, "building again changes nothing");

    let answer = bench.land(&before, &candidate, &change).await.expect("up");
    assert!(
        matches!(&answer, LandAnswer::Landed(head, _) if head.sha == candidate.sha),
        "{answer:?}"
    );
    assert_eq!(bench.files().get("a").map(String::as_str), Some("2"));
    assert_eq!(bench.state(change.pr), PullRequestState::Merged);
    assert_eq!(bench.land(&before, &candidate, &change).await.expect("up"), answer);
}

#[tokio::test]
async fn a_conflict_names_the_first_conflicting_run_ahead() {
    let bench = Fixture::new();
    let (one, two) = (bench.open(&[("a", "2")]), bench.open(&[("b", "2")]));
    let (first, all) = (run(1), run(2));
    let below = bench.candidate(&[], &one).await;
    let above = bench.candidate(&[(first, &below)], &two).await;
    let late = bench.open(&[("a", "3"), ("b", "3")]);
    let built = bench.build(&[(first, &below), (all, &above)], &late).await;
    let Built::Conflict { pr, with, paths } = built else { panic!("{built:?}") };
    assert_eq!((pr, with), (late.pr, ConflictWith::Ahead(first)));
    assert_eq!(paths, ["a", "b"]);

    bench.host.push_branch(&bench.repository.name, "main", &[("a", "9")]);
    let built = bench.build(&[], &late).await;
    assert!(matches!(built, Built::Conflict { with: ConflictWith::Target, .. }), "{built:?}");
}

#[tokio::test]
async fn nothing_lands_on_a_target_that_has_moved() {
    let bench = Fixture::new();
    let (before, change) = (bench.main().await, bench.open(&[("a", "2")]));
    let candidate = bench.candidate(&[], &change).await;
    let moved_to = bench.host.push_branch(&bench.repository.name, "main", &[("c", "1")]);
    let answer = bench.land(&before, &candidate, &change).await.expect("up");
    assert!(matches!(&answer, LandAnswer::TargetMoved(head) if head.sha == moved_to), "{answer:?}");
    assert_eq!(bench.main().await, moved_to);
}

#[tokio::test]
async fn nothing_lands_after_a_push_to_the_pull_request() {
    let bench = Fixture::new();
    let (before, change) = (bench.main().await, bench.open(&[("a", "2")]));
    let candidate = bench.candidate(&[], &change).await;
    bench.host.push(&bench.repository.name, change.pr, &[("a", "3")]);
    let answer = bench.land(&before, &candidate, &change).await.expect("up");
    assert_eq!(answer, LandAnswer::HeadMoved { pr: change.pr });
    assert_eq!(bench.main().await, before);
}

#[tokio::test]
async fn a_candidate_beside_the_target_lands_again_if_its_tree_is_the_same() {
    let bench = Fixture::new();
    let (one, two) = (bench.open(&[("a", "2")]), bench.open(&[("b", "2")]));
    let below = bench.candidate(&[], &one).await;
    let above = bench.candidate(&[(run(1), &below)], &two).await;
    // The first change reaches the target by another commit.
    let expected = bench.host.push_branch(&bench.repository.name, "main", &[("a", "2")]);
    let answer = bench.land(&expected, &above, &two).await.expect("up");
    let LandAnswer::Landed(head, _) = answer else { panic!("{answer:?}") };
    assert_eq!(head.tree, above.tree);
    assert_ne!(head.sha, above.sha);
    let again = bench.land(&expected, &above, &two).await.expect("up");
    assert_eq!(again, LandAnswer::Landed(head, None), "what has landed is recognized by its tree");
}

#[tokio::test]
async fn a_planned_fault_affects_one_call_and_a_lost_answer_does_not_undo_the_landing() {
    let bench = Fixture::new();
    let (before, change) = (bench.main().await, bench.open(&[("a", "2")]));
    let candidate = bench.candidate(&[], &change).await;
    bench.host.fail(Call::Land, 1, Failure::Unavailable);
    bench.host.fail(Call::Land, 2, Failure::AnswerLost);
    for landed in [false, true] {
        let answer = bench.land(&before, &candidate, &change).await;
        assert!(matches!(answer, Err(HostError::Unavailable { .. })), "{answer:?}");
        assert_eq!(bench.main().await == candidate.sha, landed);
    }
    let answer = bench.land(&before, &candidate, &change).await.expect("nothing more is planned");
    assert!(matches!(answer, LandAnswer::Landed(..)), "{answer:?}");
    assert_eq!(bench.host.calls(Call::Land), 3);
}

#[tokio::test]
async fn a_rebased_candidate_has_every_commit_of_its_pull_request() {
    let bench = Fixture::new();
    let change = bench.open(&[("a", "2")]);
    let head = bench.host.push(&bench.repository.name, change.pr, &[("c", "1")]);
    bench.host.push_branch(&bench.repository.name, "main", &[("b", "2")]);
    let order = BuildCandidate {
        run: run(1),
        target: branch("main"),
        target_head: bench.main().await,
        base: bench.main().await,
        before: Vec::new(),
        direct: false,
        ahead: Vec::new(),
        changes: vec![Change { head, ..change }],
        method: MergeMethod::Rebase,
        branch: branch("signalbox-merge/pr-1"),
    };
    let built = bench.host.build_candidate(&bench.repository, &order).await.expect("up");
    let Built::Candidate { candidate, .. } = built else { panic!("{built:?}") };
    let files = bench.host.files(&bench.repository.name, "signalbox-merge/pr-1").expect("pushed");
    let files: Vec<(&str, &str)> = files.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(files, [("a", "2"), ("b", "2"), ("c", "1")]);
    let listed = bench.host.test_branches(&bench.repository).await.expect("up");
    assert_eq!(listed.first().map(|it| &it.sha), Some(&candidate.sha));
}

#[tokio::test]
async fn a_test_branch_is_deleted_only_at_its_expected_head() {
    let bench = Fixture::new();
    let change = bench.open(&[("a", "2")]);
    let candidate = bench.candidate(&[], &change).await;
    let (name, elsewhere) = (branch("signalbox-merge/pr-1"), bench.main().await);
    let left_after_deleting = async |expected| {
        let deleted = bench.host.delete_branch(&bench.repository, &name, expected).await;
        deleted.expect("a moved or missing branch is not an error");
        bench.host.test_branches(&bench.repository).await.expect("up").len()
    };
    assert_eq!(left_after_deleting(Some(&elsewhere)).await, 1);
    assert_eq!(left_after_deleting(Some(&candidate.sha)).await, 0);
    assert_eq!(left_after_deleting(None).await, 0);
}

#[tokio::test]
async fn a_closed_pull_request_does_not_land() {
    let bench = Fixture::new();
    let (before, change) = (bench.main().await, bench.open(&[("a", "2")]));
    let candidate = bench.candidate(&[], &change).await;
    let close = |it: &mut PullRequest| it.state = PullRequestState::Closed;
    bench.host.edit(&bench.repository.name, change.pr, close);
    let answer = bench.land(&before, &candidate, &change).await.expect("up");
    assert_eq!(answer, LandAnswer::HeadMoved { pr: change.pr });
}

#[tokio::test]
async fn the_newest_pull_request_of_a_branch_is_found_open_ones_first() {
    let bench = Fixture::new();
    let (one, two) = (bench.open(&[("a", "2")]), bench.open(&[("b", "2")]));
    let name = &bench.repository.name;
    let from = |pr: PrNumber| {
        bench.host.edit(name, pr, |it| it.head_branch = Some("fix".to_owned()));
    };
    from(one.pr);
    from(two.pr);
    bench.host.edit(name, two.pr, |it| it.state = PullRequestState::Closed);
    let query = PullRequestQuery::Branch("fix".to_owned());
    let found = bench.host.pull_request(&bench.repository, &query).await.expect("up");
    assert_eq!(found.map(|it| it.number), Some(one.pr));
}
