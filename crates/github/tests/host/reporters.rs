//! Whose report of a required check counts.

use std::sync::Mutex;

use async_trait::async_trait;
use signalbox_conformance::git_host::build;
use signalbox_domain::ids::{BranchName, PrNumber, RunId, Sha, TreeId};
use signalbox_domain::ports::{
    Built, CheckOutput, ChecksJob, ChecksRunner, ChecksSink, GitHost, SinkClosed,
};
use signalbox_domain::queue::{Candidate, CheckConclusion, CheckReport, MergeMethod, RunChecks};
use signalbox_github::GitHubChecks;
use signalbox_testkit::github_double::{Access, Fault, Reported};
use uuid::Uuid;

use crate::world::World;

/// The app that runs workflows, and another one.
const ACTIONS: u64 = 15_368;
const OTHER: u64 = 77;

/// Keeps what a runner reports, and wants no more after the first look.
#[derive(Default)]
struct Once(Mutex<Vec<CheckReport>>);

#[async_trait]
impl ChecksSink for Once {
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed> {
        self.0.lock().expect("not poisoned").extend(checks);
        Ok(())
    }

    async fn output(&self, _: CheckOutput) -> Result<(), SinkClosed> {
        Ok(())
    }

    async fn closed(&self) {}
}

/// A target with a head, and a candidate for it.
struct Case {
    world: World,
    main: Sha,
    sha: Sha,
}

impl Case {
    fn new(pin: Option<u64>) -> Self {
        let world = World::new();
        world.commit(&[("a.txt", "base\n")], "base");
        let main = world.push("main");
        world.double.require_by("main", &[("test", pin)], &[]);
        let sha = world.branch("candidate", "main", &[("b.txt", "b\n")]);
        Self { world, main, sha }
    }

    /// The check `test`: whether it succeeded, or `None` while it is pending or not reported; and
    /// its summary.
    async fn test(&self) -> (Option<bool>, Option<String>) {
        let job = ChecksJob {
            repository: self.world.repository.clone(),
            checks: RunChecks {
                run: RunId(Uuid::new_v4()),
                candidate: Candidate {
                    sha: self.sha.clone(),
                    tree: TreeId::new("2".repeat(40)).expect("a tree"),
                },
                branch: BranchName::new("signalbox-merge/x").expect("a branch"),
                target: BranchName::new("main").expect("a branch"),
                config_from: self.main.clone(),
                prs: vec![PrNumber(1)],
                again: Vec::new(),
                required: vec!["test".into()],
            },
        };
        let sink = Once::default();
        let runner = GitHubChecks::new(self.world.host.clone());
        runner.run(&job, &sink).await.expect("they are read");
        let reports = sink.0.into_inner().expect("not poisoned");
        let test: Vec<&CheckReport> = reports.iter().filter(|it| it.name == "test").collect();
        assert!(test.len() <= 1, "one report for each name: {reports:?}");
        let end = test.first().and_then(|it| it.conclusion).map(CheckConclusion::is_success);
        (end, test.first().and_then(|it| it.summary.clone()))
    }

    async fn ends(&self) -> Option<bool> {
        self.test().await.0
    }

    fn report(&self, reported: &Reported<'_>) {
        self.world.double.report_run(self.sha.as_str(), reported);
    }

    fn post(&self, login: &str, state: &str) {
        self.world.double.post_status(self.sha.as_str(), login, "test", state);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_s_status_does_not_stand_for_the_pinned_app() {
    let case = Case::new(Some(ACTIONS));
    case.post("eve", "success");
    let (end, said) = case.test().await;
    assert_eq!(end, None, "nothing that counts was reported");
    let said = said.expect("the summary has the reason");
    assert!(said.contains("app 15368") && said.contains("eve"), "{said}");
    case.report(&Reported { app: OTHER, suite: 9, ..Reported::ended("test", "success") });
    assert_eq!(case.ends().await, None, "another app's run does not count either");
    case.report(&Reported::begun("test"));
    assert_eq!(case.ends().await, None);
    case.world.double.rerun(1);
    case.report(&Reported::ended("test", "success"));
    assert_eq!(case.ends().await, Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_of_classic_protection_holds_and_it_may_allow_any_app() {
    let case = Case::new(None);
    let classic = [("test", Some(OTHER))];
    case.world.double.require_by("main", &[], &classic);
    case.report(&Reported::ended("test", "success"));
    assert_eq!(case.ends().await, None);
    // An app may write a status instead of a check run.
    case.post(&format!("app-{OTHER}[bot]"), "success");
    assert_eq!(case.ends().await, Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_pinned_app_is_not_outvoted() {
    let case = Case::new(Some(ACTIONS));
    case.report(&Reported::ended("test", "failure"));
    case.post("eve", "success");
    case.report(&Reported { app: OTHER, suite: 9, ..Reported::ended("test", "success") });
    assert_eq!(case.ends().await, Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_pin_who_reports_on_the_target_is_expected() {
    let case = Case::new(None);
    let main = case.main.as_str();
    case.world
        .double
        .report_run(main, &Reported { suite: 5, ..Reported::ended("test", "success") });
    case.post("eve", "success");
    case.report(&Reported { app: OTHER, suite: 9, ..Reported::ended("test", "success") });
    assert_eq!(case.ends().await, None, "it was never reported by them on the target");
    case.report(&Reported::ended("test", "success"));
    assert_eq!(case.ends().await, Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_reports_on_the_target_a_status_and_a_run_must_both_succeed() {
    let case = Case::new(None);
    case.report(&Reported::ended("test", "success"));
    assert_eq!(case.ends().await, Some(true));
    case.post("ci-bot", "pending");
    assert_eq!(case.ends().await, None);
    case.post("ci-bot", "failure");
    assert_eq!(case.ends().await, Some(false));
    case.post("eve", "success");
    assert_eq!(case.ends().await, Some(false), "the newest of each account counts");
    case.post("ci-bot", "success");
    assert_eq!(case.ends().await, Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_runs_of_one_name_both_must_be_good_in_either_order() {
    for (first, second) in [("failure", "success"), ("success", "failure")] {
        let case = Case::new(Some(ACTIONS));
        case.report(&Reported { suite: 2, ..Reported::ended("test", first) });
        case.report(&Reported { suite: 3, ..Reported::ended("test", second) });
        assert_eq!(case.ends().await, Some(false), "{first}, {second}");
    }
    let case = Case::new(Some(ACTIONS));
    case.report(&Reported { suite: 2, ..Reported::ended("test", "success") });
    case.report(&Reported { suite: 3, ..Reported::begun("test") });
    assert_eq!(case.ends().await, None, "one has not ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_attempt_of_a_suite_replaces_the_one_before() {
    for (before, after, wanted) in
        [("failure", "success", Some(true)), ("success", "failure", Some(false))]
    {
        let case = Case::new(Some(ACTIONS));
        case.report(&Reported::ended("test", before));
        case.world.double.rerun(1);
        case.report(&Reported::ended("test", after));
        assert_eq!(case.ends().await, wanted, "{before}, {after}");
        // The suite of another event is none of this one's.
        case.report(&Reported { suite: 2, ..Reported::ended("test", "failure") });
        assert_eq!(case.ends().await, Some(false));
    }
    // An app without workflows replaces its run by another one in its suite.
    let case = Case::new(Some(OTHER));
    for end in ["failure", "success"] {
        case.report(&Reported { app: OTHER, ..Reported::ended("test", end) });
    }
    assert_eq!(case.ends().await, Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_one_name_in_one_workflow_must_all_be_good() {
    for ends in [["failure", "success"], ["success", "failure"]] {
        let case = Case::new(Some(ACTIONS));
        for end in ends {
            case.report(&Reported::ended("test", end));
        }
        assert_eq!(case.ends().await, Some(false), "{ends:?}");
        case.world.double.rerun(1);
        for _ in 0..2 {
            case.report(&Reported::ended("test", "success"));
        }
        assert_eq!(case.ends().await, Some(true), "both were run again");
    }
    // Without the permission to read workflows, jobs and attempts are indistinguishable: all of
    // them must succeed.
    let case = Case::new(Some(ACTIONS));
    for end in ["failure", "success"] {
        case.report(&Reported::ended("test", end));
    }
    case.world.double.plan("GET", "/actions/runs/", 1, Fault::Status(403));
    assert_eq!(case.ends().await, Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_pull_request_has_passed_by_the_same_rule() {
    let case = Case::new(Some(ACTIONS));
    let (world, main) = (&case.world, &case.main);
    let topic = world.open("topic", &[("c.txt", "c\n")]);
    let mut request = build(main, vec![topic.clone()], MergeMethod::Squash);
    request.direct = true;
    let ends = async || {
        let Built::Candidate { head_checks, .. } = world.build(&request).await else { panic!() };
        let test = head_checks.iter().find(|it| it.name == "test");
        test.and_then(|it| it.conclusion).map(CheckConclusion::is_success)
    };
    world.double.post_status(topic.head.as_str(), "eve", "test", "success");
    assert_eq!(ends().await, None);
    world.double.report_run(topic.head.as_str(), &Reported::ended("test", "success"));
    assert_eq!(ends().await, Some(true));
    let pushed = Reported { suite: 2, ..Reported::ended("test", "failure") };
    world.double.report_run(topic.head.as_str(), &pushed);
    assert_eq!(ends().await, Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_cannot_be_read_are_not_rules_that_ask_for_nothing() {
    let case = Case::new(Some(ACTIONS));
    let world = &case.world;
    let target = BranchName::new("main").expect("a branch");
    world.double.set_access(Access::Hidden);
    let read = world.host.required_statuses(&world.repository, &target, &case.main).await;
    assert!(read.is_err(), "{read:?}");
    world.double.set_access(Access::Full);
    // Classic protection is readable by administrators only: rulesets are enough.
    world.double.plan("GET", "/protection/", 1, Fault::Status(403));
    let read = world.host.required_statuses(&world.repository, &target, &case.main).await;
    let wanted = Some(vec!["test".to_owned()]);
    assert_eq!(read.expect("an answer").branch_protection, wanted);
}
