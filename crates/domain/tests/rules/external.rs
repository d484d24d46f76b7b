//! External checks: which reports count, and which are refused.

use signalbox_domain::ids::{PrNumber, RunId, Sha};
use signalbox_domain::queue::{
    Check, CheckConclusion, CheckStatus, Command, Effect, EventKind, Fact, FailReason, PrState,
    Reason, Refusal, RunStatus, SettingsPatch, WaitReason,
};
use signalbox_domain::testing::{ExternalRequest, Rules, World};
use signalbox_domain::time::Span;
use uuid::Uuid;

use crate::reasons::set;
use crate::{exit, is_checks, states, waits, world};

use CheckConclusion::{Cancelled, Failure, Neutral, Success};

/// A world with an external CI.
fn external() -> World {
    world(1, Rules { external: true, ..Rules::default() })
}

/// Submits a pull request, and builds its candidate. Returns what the CI is requested to do.
fn requested(world: &mut World, pr: u32) -> ExternalRequest {
    world.submit(pr, None).expect("submitted");
    request(world)
}

/// Advances until the next request.
fn request(world: &mut World) -> ExternalRequest {
    while world.requests.is_empty() {
        assert!(world.step(), "nothing was requested");
    }
    world.requests.remove(0)
}

/// Whether this is refused and changes nothing of the queue.
fn refused(
    world: &mut World,
    request: &ExternalRequest,
    check: &str,
    conclusion: Option<CheckConclusion>,
) -> Refusal {
    let before = world.queue.clone();
    let refusal = world.report_as(request, check, conclusion).expect_err("refused");
    assert_eq!(world.queue, before, "{refusal}");
    refusal
}

#[test]
fn an_external_check_is_requested_and_nothing_runs_on_the_host() {
    let mut world = external();
    let request = requested(&mut world, 1);
    let run = world.queue.runs().next().expect("a run").clone();
    let event = world.events.iter().find(|event| event.kind == EventKind::ChecksRequested);
    let of = event.and_then(|event| event.run.clone()).expect("the run of the event");
    assert_eq!((of.id, &of.branch), (run.id, &run.branch));
    assert_eq!((request.run, &request.prs), (run.id, &vec![PrNumber(1)]));
    assert_eq!(of.sha, run.candidate.map(|candidate| candidate.sha));
    assert_eq!(request.checks, ["test"]);
    assert!(!world.outbox.iter().any(|it| is_checks(&it.effect)), "{:?}", world.outbox);
    assert_eq!(waits(&world, 1), WaitReason::ChecksRunning { done: 0, of: 1 });
}

#[test]
fn success_lands_and_failure_fails_with_the_name_of_the_check() {
    for conclusion in [Success, Neutral] {
        let mut world = external();
        let request = requested(&mut world, 1);
        world.report_as(&request, "test", None).expect("it runs");
        world.report_as(&request, "test", Some(conclusion)).expect("accepted");
        world.settle();
        assert_eq!(world.landed, [1], "{conclusion:?}");
    }
    for conclusion in [Failure, Cancelled] {
        let mut world = external();
        let request = requested(&mut world, 1);
        world.report_as(&request, "test", Some(conclusion)).expect("accepted");
        world.settle();
        assert!(world.landed.is_empty(), "{conclusion:?}");
        let failed = exit(&world, 1);
        assert_eq!(failed.reason(), Reason::Failed(FailReason::RequiredStatus));
    }
}

#[test]
fn both_kinds_of_checks_are_required() {
    let mut world = external();
    let names = vec!["lint".to_owned(), "test".to_owned()];
    set(&mut world, SettingsPatch { required_statuses: Some(names), ..SettingsPatch::default() });
    let request = requested(&mut world, 1);
    assert_eq!(request.checks, ["test"]);
    let own = world.outbox.iter().find_map(|it| match &it.effect {
        Effect::RunChecks(checks) => Some(checks.required.clone()),
        _ => None,
    });
    assert_eq!(own, Some(vec!["lint".to_owned()]));
    let not_external = refused(&mut world, &request, "lint", Some(Success));
    assert!(matches!(not_external, Refusal::NotExternal { .. }), "{not_external:?}");
    world.report_as(&request, "test", Some(Success)).expect("accepted");
    assert_eq!(states(&world), [(1, PrState::Testing)], "lint has not reported");
}

#[test]
fn a_report_about_anything_else_is_refused() {
    let mut world = external();
    let request = requested(&mut world, 1);
    let run = request.run;
    let given = Sha::new("a".repeat(40)).expect("a commit");
    let other = ExternalRequest { sha: given.clone(), ..request.clone() };
    let tested = Some(request.sha.clone());
    assert_eq!(
        refused(&mut world, &other, "test", Some(Success)),
        Refusal::OtherCommit { run, given, tested }
    );
    let (check, listed) = ("deploy".to_owned(), vec!["test".to_owned()]);
    assert_eq!(
        refused(&mut world, &request, "deploy", Some(Success)),
        Refusal::NotExternal { run, check, external: listed }
    );
    let run = RunId(Uuid::from_u128(7));
    let unknown = ExternalRequest { run, ..request };
    assert_eq!(refused(&mut world, &unknown, "test", Some(Success)), Refusal::UnknownRun { run });
    world.settle();
    assert_eq!(states(&world), [(1, PrState::Testing)]);
}

#[test]
fn a_run_that_is_being_built_tests_no_commit() {
    let mut world = external();
    world.submit(1, None).expect("submitted");
    let run = world.queue.runs().next().expect("a run").id;
    let sha = Sha::new("a".repeat(40)).expect("a commit");
    let request = ExternalRequest { run, sha, prs: Vec::new(), checks: Vec::new() };
    let refusal = refused(&mut world, &request, "test", Some(Success));
    assert!(matches!(refusal, Refusal::OtherCommit { tested: None, .. }), "{refusal:?}");
}

/// The pull request requires `test` of the CI, and `lint` of the host.
fn with_lint(concurrency: u32) -> World {
    let mut world = world(concurrency, Rules { external: true, ..Rules::default() });
    let names = vec!["test".to_owned(), "lint".to_owned()];
    set(&mut world, SettingsPatch { required_statuses: Some(names), ..SettingsPatch::default() });
    world
}

#[test]
fn the_first_conclusion_is_final_and_may_be_repeated() {
    let mut world = with_lint(1);
    let request = requested(&mut world, 1);
    world.report_as(&request, "test", Some(Success)).expect("accepted");
    let before = world.queue.run(request.run).expect("a run").clone();
    world.report_as(&request, "test", Some(Success)).expect("a repeat");
    assert_eq!(world.queue.run(request.run), Some(&before));
    let (run, check) = (request.run, "test".to_owned());
    let final_ = Refusal::CheckCompleted { run, check, conclusion: Success };
    assert_eq!(refused(&mut world, &request, "test", Some(Failure)), final_);
    assert_eq!(refused(&mut world, &request, "test", None), final_);
}

#[test]
fn a_run_that_has_ended_accepts_nothing_new() {
    let mut world = with_lint(2);
    let ahead = requested(&mut world, 1);
    let request = requested(&mut world, 2);
    let lint = Check {
        name: "lint".to_owned(),
        status: CheckStatus::Completed,
        conclusion: Some(Failure),
        url: String::new(),
        summary: None,
        at: world.at,
        excused: Vec::new(),
    };
    let (run, sha) = (request.run, request.sha.clone());
    world.take_in(&Fact::ChecksReported { run, sha, checks: vec![lint], read: false });
    // It waits for the pull request ahead, which may be at fault.
    let status = world.queue.run(run).expect("it waits").status.clone();
    assert!(matches!(status, RunStatus::Failed { .. }), "{status:?}");
    let ended = Refusal::RunEnded { run, status };
    assert_eq!(refused(&mut world, &request, "test", Some(Success)), ended);
    assert_eq!(refused(&mut world, &request, "test", None), ended);
    world.report_as(&ahead, "test", Some(Success)).expect("the other run is active");
}

#[test]
fn a_restarted_run_is_requested_again_and_the_old_one_is_unknown() {
    let mut world = external();
    let old = requested(&mut world, 1);
    let by = world.caller();
    world.ask(Command::Restart { pr: PrNumber(1), by }).expect("restarted");
    let new = request(&mut world);
    assert_ne!(old.run, new.run);
    let refusal = refused(&mut world, &old, "test", Some(Failure));
    assert_eq!(refusal, Refusal::UnknownRun { run: old.run });
    world.report_as(&new, "test", Some(Success)).expect("accepted");
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_ci_that_never_reports_is_noticed_and_then_fails_the_run() {
    let mut world = external();
    requested(&mut world, 1);
    world.wait(Span::minutes(10));
    world.take_in(&Fact::TimePassed);
    let silent = waits(&world, 1);
    assert!(matches!(silent, WaitReason::ChecksSilent { .. }), "{silent:?}");
    world.wait(Span::minutes(300));
    world.take_in(&Fact::TimePassed);
    world.settle();
    assert_eq!(exit(&world, 1).reason(), Reason::Failed(FailReason::Timeout));
}
