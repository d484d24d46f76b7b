//! Failed checks that run again, that are excused, or whose test reports are awaited; and CI that is
//! slow.

use signalbox_domain::ids::{PrNumber, RunId, Sha};
use signalbox_domain::queue::{
    Check, CheckCause, CheckConclusion, CheckStatus, Decision, Effect, Exit, Fact, FailReason,
    FailureCause, Mode, PrState, RetryClass, RunChecks, SettingsPatch, WaitReason, machine_failure,
    next_deadline,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::reasons::{set, submitted};
use crate::{bad, decisions, exit, in_batches, is_checks, run_until, states, update, waits, world};

use CheckConclusion::{Cancelled, Failure, Stale, Success, TimedOut};
use CheckStatus::{Completed, InProgress, Queued};

/// A queue with `prs` pull requests and the checks of the first run.
fn under_test(patch: SettingsPatch, prs: u32) -> (World, RunChecks) {
    let mut world = world(4, Rules::default());
    set(&mut world, patch);
    for pr in 1..=prs {
        world.submit(pr, None).expect("submitted");
    }
    let checks = next_checks(&mut world);
    (world, checks)
}

fn next_checks(world: &mut World) -> RunChecks {
    run_until(world, is_checks);
    match world.outbox.remove(0).effect {
        Effect::RunChecks(checks) => checks,
        other => panic!("{other:?}"),
    }
}

fn awaited_reports() -> FailureCause {
    FailureCause::Awaited { until: None, otherwise: Vec::new() }
}

/// What CI reports next, a second later.
fn report(
    world: &mut World,
    checks: &RunChecks,
    name: &str,
    status: CheckStatus,
    conclusion: Option<CheckConclusion>,
) -> Check {
    world.wait(Span::seconds(1));
    let check = Check {
        name: name.to_owned(),
        status,
        conclusion,
        url: format!("https://ci.example/{}", world.at.unix_micros()),
        summary: None,
        at: world.at,
        excused: Vec::new(),
    };
    let (run, sha) = (checks.run, checks.candidate.sha.clone());
    world.take_in(&Fact::ChecksReported { run, sha, checks: vec![check.clone()], read: true });
    check
}

fn ends(world: &mut World, checks: &RunChecks, conclusion: CheckConclusion) -> Check {
    report(world, checks, "test", Completed, Some(conclusion))
}

fn explain(world: &mut World, checks: &RunChecks, check: &Check, cause: FailureCause) {
    let causes = vec![CheckCause { check: check.name.clone(), at: check.at, cause }];
    let (run, sha): (RunId, Sha) = (checks.run, checks.candidate.sha.clone());
    world.take_in(&Fact::CausesFound { run, sha, causes });
}

/// A failure of which the cause is known before it is reported, as servers learn it.
fn fails_by(world: &mut World, checks: &RunChecks, cause: FailureCause) -> Check {
    world.wait(Span::seconds(1));
    let at = world.at.plus(Span::seconds(1));
    let (run, sha) = (checks.run, checks.candidate.sha.clone());
    let causes = vec![CheckCause { check: "test".into(), at, cause }];
    world.take_in(&Fact::CausesFound { run, sha, causes });
    ends(world, checks, Failure)
}

fn by(class: RetryClass) -> FailureCause {
    FailureCause::Retry { class, evidence: vec!["adds".into()], on_target: false }
}

fn retries(world: &World) -> Vec<(RetryClass, usize)> {
    let all = decisions(world);
    let retried = all.iter().filter_map(|decision| match decision {
        Decision::Retried { retry, .. } => Some((retry.class, retry.failed.len())),
        _ => None,
    });
    retried.collect()
}

fn failed_because(world: &World, pr: u32) -> (FailReason, Vec<String>) {
    match exit(world, pr) {
        Exit::Failed { reason, details, .. } => (reason, details),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_ci_lost_runs_again_on_the_same_candidate_within_its_budget() {
    for conclusion in [Cancelled, Stale] {
        let (mut world, checks) = under_test(SettingsPatch::default(), 1);
        let mut attempts = checks.clone();
        for attempt in 1..=2 {
            let lost = ends(&mut world, &attempts, conclusion);
            let shown = conclusion.as_str().to_lowercase();
            let reason = WaitReason::Retrying {
                class: "INFRASTRUCTURE".into(),
                attempt,
                of: 2,
                evidence: vec![format!("test: {shown}")],
            };
            assert_eq!(waits(&world, 1), reason);
            attempts = next_checks(&mut world);
            assert_eq!((attempts.run, &attempts.candidate), (checks.run, &checks.candidate));
            assert_eq!(
                (&attempts.required, &attempts.again),
                (&vec!["test".to_owned()], &vec![lost])
            );
        }
        ends(&mut world, &attempts, conclusion);
        let shown = conclusion.as_str().to_lowercase();
        let failed = (FailReason::RequiredStatus, vec![format!("test: {shown}")]);
        assert_eq!(failed_because(&world, 1), failed, "the budget is used up");
        assert_eq!(retries(&world), [(RetryClass::Infrastructure, 1); 2]);
    }
}

#[test]
fn a_retry_that_passes_lands_what_was_tested_and_what_is_behind_keeps_its_run() {
    let (mut world, checks) = under_test(SettingsPatch::default(), 2);
    let behind = next_checks(&mut world);
    ends(&mut world, &checks, Cancelled);
    assert_eq!(states(&world), [(1, PrState::Testing), (2, PrState::Testing)]);
    let again = next_checks(&mut world);
    ends(&mut world, &again, Success);
    ends(&mut world, &behind, Success);
    world.settle();
    assert_eq!(world.landed, [1, 2]);
    assert_eq!(
        decisions(&world).iter().filter(|it| matches!(it, Decision::RunCancelled { .. })).count(),
        0
    );
}

#[test]
fn each_class_has_a_budget_for_each_submission() {
    for (class, budget) in [
        (RetryClass::Infrastructure, 2),
        (RetryClass::KnownFlaky, 1),
        (RetryClass::SeenElsewhere, 1),
    ] {
        let (mut world, mut checks) = under_test(SettingsPatch::default(), 1);
        for submission in 1..=2 {
            for _ in 0..budget {
                fails_by(&mut world, &checks, by(class));
                checks = next_checks(&mut world);
            }
            fails_by(&mut world, &checks, by(class));
            assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus, "{class:?}");
            assert_eq!(retries(&world).len(), submission * budget, "{class:?}");
            world.submit(1, None).expect("submitted again");
            checks = next_checks(&mut world);
        }
    }
}

#[test]
fn a_new_failure_never_runs_again() {
    let new = || FailureCause::New { tests: vec!["subtracts".into()] };
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    fails_by(&mut world, &checks, new());
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
    // Neither does one that was known to be flaky, and then fails in a new way.
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    fails_by(&mut world, &checks, by(RetryClass::KnownFlaky));
    let again = next_checks(&mut world);
    fails_by(&mut world, &again, new());
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
    // Without evidence a failure is final, and so is a timeout of CI's own.
    for conclusion in [Failure, TimedOut] {
        let (mut world, checks) = under_test(SettingsPatch::default(), 1);
        ends(&mut world, &checks, conclusion);
        assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
        assert_eq!(retries(&world), []);
    }
}

#[test]
fn a_new_failure_beside_a_lost_check_ends_the_run_without_waiting() {
    let names = vec!["lint".to_owned(), "test".to_owned()];
    let patch = SettingsPatch { required_statuses: Some(names), ..SettingsPatch::default() };
    let (mut world, checks) = under_test(patch.clone(), 1);
    report(&mut world, &checks, "lint", Completed, Some(Cancelled));
    let waits_for = WaitReason::ChecksRunning { done: 1, of: 2 };
    assert_eq!(waits(&world, 1), waits_for, "the others end first");
    ends(&mut world, &checks, Failure);
    let (_, details) = failed_because(&world, 1);
    assert_eq!(details, ["lint: cancelled", "test"]);
    // Only the lost check runs again, and the result of the other one stays.
    let (mut world, checks) = under_test(patch, 1);
    ends(&mut world, &checks, Success);
    report(&mut world, &checks, "lint", Completed, Some(Cancelled));
    let again = next_checks(&mut world);
    let names: Vec<&str> = again.again.iter().map(|check| check.name.as_str()).collect();
    assert_eq!((names, again.required.as_slice()), (vec!["lint"], checks.required.as_slice()));
    report(&mut world, &again, "lint", Completed, Some(Success));
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn every_class_of_a_retry_uses_its_budget() {
    let names = vec!["lint".to_owned(), "test".to_owned()];
    let patch = SettingsPatch { required_statuses: Some(names), ..SettingsPatch::default() };
    let (mut world, checks) = under_test(patch, 1);
    report(&mut world, &checks, "lint", Completed, Some(Cancelled));
    fails_by(&mut world, &checks, by(RetryClass::KnownFlaky));
    let again = next_checks(&mut world);
    assert_eq!(retries(&world), [(RetryClass::Infrastructure, 2)]);
    report(&mut world, &again, "lint", Completed, Some(Success));
    fails_by(&mut world, &again, by(RetryClass::KnownFlaky));
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus, "one retry for flakes");
}

#[test]
fn a_lost_check_does_not_wait_for_one_that_is_never_reported() {
    let names = vec!["build".to_owned(), "test".to_owned()];
    let patch = SettingsPatch { required_statuses: Some(names), ..SettingsPatch::default() };
    let (mut world, checks) = under_test(patch, 1);
    report(&mut world, &checks, "build", Completed, Some(Cancelled));
    assert_eq!(retries(&world), [], "the other one may still start");
    world.wait(Span::minutes(10));
    world.take_in(&Fact::TimePassed);
    assert_eq!(retries(&world), [(RetryClass::Infrastructure, 1)]);
    let again = next_checks(&mut world);
    report(&mut world, &again, "build", Completed, Some(Success));
    ends(&mut world, &again, Success);
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_lost_check_without_test_results_stays_lost() {
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    let lost = ends(&mut world, &checks, Cancelled);
    assert_eq!(retries(&world), [(RetryClass::Infrastructure, 1)]);
    let again = next_checks(&mut world);
    explain(&mut world, &checks, &lost, by(RetryClass::KnownFlaky));
    world.wait(Span::seconds(1));
    let at = world.at.plus(Span::seconds(1));
    let (run, sha) = (checks.run, checks.candidate.sha.clone());
    let awaited = awaited_reports();
    let causes = vec![CheckCause { check: "test".into(), at, cause: awaited }];
    world.take_in(&Fact::CausesFound { run, sha, causes });
    let lost = ends(&mut world, &again, Cancelled);
    assert!(matches!(waits(&world, 1), WaitReason::AwaitingReports { .. }));
    explain(&mut world, &checks, &lost, FailureCause::New { tests: Vec::new() });
    assert_eq!(retries(&world), [(RetryClass::Infrastructure, 1); 2]);
}

#[test]
fn the_retries_of_an_hour_are_limited_for_the_whole_queue() {
    let patch = SettingsPatch { retries_per_hour: Some(2), ..SettingsPatch::default() };
    let (mut world, first) = under_test(patch, 3);
    let others = [next_checks(&mut world), next_checks(&mut world)];
    ends(&mut world, &first, Cancelled);
    ends(&mut world, &others[0], Cancelled);
    assert_eq!(retries(&world).len(), 2);
    ends(&mut world, &others[1], Cancelled);
    assert_eq!(states(&world)[2], (3, PrState::PendingFailure), "the hour is used up");
    let again = next_checks(&mut world);
    world.wait(Span::hours(1));
    ends(&mut world, &again, Cancelled);
    assert_eq!(retries(&world).len(), 3);
    let none = SettingsPatch { retries_per_hour: Some(0), ..SettingsPatch::default() };
    let (mut world, checks) = under_test(none, 1);
    ends(&mut world, &checks, Cancelled);
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
}

#[test]
fn a_batch_runs_again_before_it_is_split() {
    let (mut world, checks) = under_test(in_batches(2), 2);
    assert_eq!(checks.prs, [PrNumber(1), PrNumber(2)]);
    fails_by(&mut world, &checks, by(RetryClass::KnownFlaky));
    let again = next_checks(&mut world);
    assert_eq!(again.run, checks.run);
    // The budget of every member is used.
    fails_by(&mut world, &again, by(RetryClass::KnownFlaky));
    world.settle();
    assert_eq!((retries(&world).len(), world.landed.len()), (1, 2), "both halves pass");
}

#[test]
fn reports_of_the_attempt_before_change_nothing() {
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    let lost = ends(&mut world, &checks, Cancelled);
    let again = next_checks(&mut world);
    let queue = world.queue.clone();
    let (run, sha) = (checks.run, checks.candidate.sha.clone());
    world.wait(Span::minutes(1));
    let repeated = vec![lost.clone()];
    world.take_in(&Fact::ChecksReported { run, sha, checks: repeated, read: true });
    explain(&mut world, &checks, &lost, by(RetryClass::KnownFlaky));
    assert_eq!(world.queue.entry_of(PrNumber(1)), queue.entry_of(PrNumber(1)));
    assert_eq!(world.queue.run(run), queue.run(run));
    ends(&mut world, &again, Success);
    world.settle();
    assert_eq!(world.landed, [1]);
}

#[test]
fn a_failure_waits_for_its_reports_and_then_counts_as_it_is() {
    let awaited = awaited_reports;
    let waiting = || {
        let (mut world, checks) = under_test(SettingsPatch::default(), 1);
        let failed = fails_by(&mut world, &checks, awaited());
        let until = world.at.plus(Span::seconds(120));
        let reason = WaitReason::AwaitingReports { names: vec!["test".into()], until };
        assert_eq!(waits(&world, 1), reason);
        assert_eq!(next_deadline(&world.queue), Some(until));
        (world, checks, failed)
    };
    let (mut world, checks, failed) = waiting();
    let find = world.outbox.iter().find_map(|it| match &it.effect {
        Effect::FindCauses { run, checks, .. } => Some((*run, checks.clone())),
        _ => None,
    });
    assert_eq!(find, Some((checks.run, vec![failed.clone()])));
    let tests = vec!["adds (flaky by monitor Pass on retry)".to_owned()];
    let quarantined = FailureCause::Quarantined { tests: tests.clone() };
    explain(&mut world, &checks, &failed, quarantined);
    let run = world.queue.run(checks.run).expect("it is kept");
    let summary = "only quarantined tests failed: adds (flaky by monitor Pass on retry)";
    assert_eq!(run.checks[0].conclusion, Some(CheckConclusion::Neutral));
    assert_eq!(run.checks[0].summary.as_deref(), Some(summary));
    world.settle();
    assert_eq!(world.landed, [1]);
    let excused = Decision::Excused { run: checks.run, check: "test".into(), tests };
    assert!(decisions(&world).contains(&excused));

    let (mut world, _, _) = waiting();
    world.wait(Span::seconds(119));
    world.take_in(&Fact::TimePassed);
    assert_eq!(states(&world), [(1, PrState::Testing)]);
    world.wait(Span::seconds(1));
    world.take_in(&Fact::TimePassed);
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);

    let (mut world, checks, failed) = waiting();
    explain(&mut world, &checks, &failed, by(RetryClass::KnownFlaky));
    assert_eq!(retries(&world), [(RetryClass::KnownFlaky, 1)]);
}

#[test]
fn a_machine_failure_is_a_line_with_one_of_the_messages() {
    let found = |messages: &[&str], output| {
        let mut world = world(1, Rules::default());
        let messages = messages.iter().map(|message| (*message).to_owned()).collect();
        let patch = SettingsPatch { infrastructure_messages: Some(messages), ..Default::default() };
        set(&mut world, patch);
        machine_failure(&world.queue.header.settings, output)
    };
    let output = "1 of 3 failed\ncc: No space left on device\nConnection reset by peer\n";
    assert_eq!(found(&[], output), None);
    assert_eq!(found(&[" ", "\t"], output), None, "a blank one is in every line");
    assert_eq!(found(&["no space left"], output), None, "case-sensitive");
    assert_eq!(found(&["device\nConnection"], output), None, "within a line");
    let both = ["Connection reset", " No space left "];
    assert_eq!(found(&both, output), Some("cc: No space left on device"), "the first line");
}

#[test]
fn a_failing_machine_runs_again_when_no_report_comes() {
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    let otherwise = vec!["test: no space left".to_owned()];
    let awaited = || FailureCause::Awaited { until: None, otherwise: otherwise.clone() };
    fails_by(&mut world, &checks, awaited());
    assert!(matches!(waits(&world, 1), WaitReason::AwaitingReports { .. }));
    assert_eq!(retries(&world), []);
    world.wait(Span::seconds(120));
    world.take_in(&Fact::TimePassed);
    assert_eq!(retries(&world), [(RetryClass::Infrastructure, 1)]);
    let again = next_checks(&mut world);
    let failed = fails_by(&mut world, &again, awaited());
    // A report that comes in time decides.
    explain(&mut world, &again, &failed, FailureCause::New { tests: vec!["adds".into()] });
    assert_eq!(retries(&world), [(RetryClass::Infrastructure, 1)]);
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
}

#[test]
fn a_report_that_is_not_read_in_time_may_name_a_failed_test() {
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    let otherwise = vec!["test: no space left".to_owned()];
    let failed = fails_by(&mut world, &checks, FailureCause::Awaited { until: None, otherwise });
    explain(&mut world, &checks, &failed, awaited_reports());
    assert!(matches!(waits(&world, 1), WaitReason::AwaitingReports { .. }));
    world.wait(Span::seconds(120));
    world.take_in(&Fact::TimePassed);
    assert_eq!(retries(&world), []);
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
}

#[test]
fn a_run_that_ends_with_an_earlier_one_is_not_judged_by_overdue_reports() {
    let (mut world, ahead) = under_test(SettingsPatch::default(), 2);
    let behind = next_checks(&mut world);
    fails_by(&mut world, &ahead, awaited_reports());
    let otherwise = vec!["test: no space left".to_owned()];
    fails_by(&mut world, &behind, FailureCause::Awaited { until: None, otherwise });
    world.wait(Span::seconds(120));
    world.take_in(&Fact::TimePassed);
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
    assert_eq!(retries(&world), [], "its candidate contained the one that failed");
}

#[test]
fn an_outage_of_the_host_extends_the_wait_for_reports() {
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    fails_by(&mut world, &checks, awaited_reports());
    world.take_in(&World::host_lost());
    world.wait(Span::minutes(10));
    world.take_in(&Fact::TimePassed);
    world.take_in(&Fact::HostReachable);
    assert_eq!(states(&world), [(1, PrState::Testing)]);
    assert_eq!(next_deadline(&world.queue), Some(world.at.plus(Span::seconds(120))));
}

#[test]
fn an_external_check_does_not_run_again() {
    let rules = Rules { external: true, ..bad(&[1]) };
    let mut world = submitted(1, rules, 1);
    run_until(&mut world, |_| false);
    assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
}

#[test]
fn a_queued_job_is_slow_and_not_red() {
    let patch = SettingsPatch { testing_timeout_minutes: Some(10), ..SettingsPatch::default() };
    let (mut world, checks) = under_test(patch, 1);
    let built = world.at;
    assert_eq!(next_deadline(&world.queue), Some(built.plus(Span::minutes(10))));
    report(&mut world, &checks, "test", Queued, None);
    let queued = WaitReason::ChecksQueued { names: vec!["test".into()], since: built };
    assert_eq!(waits(&world, 1), queued);
    world.wait(Span::minutes(39));
    world.take_in(&Fact::TimePassed);
    assert_eq!(waits(&world, 1), queued, "30 minutes to start, and 10 to run");
    report(&mut world, &checks, "test", InProgress, None);
    assert_eq!(next_deadline(&world.queue), Some(world.at.plus(Span::minutes(10))));
    assert_eq!(waits(&world, 1), WaitReason::ChecksRunning { done: 0, of: 1 });
    world.wait(Span::minutes(10));
    world.take_in(&Fact::TimePassed);
    let failed = (FailReason::Timeout, vec!["no result within 10 minutes".to_owned()]);
    assert_eq!(failed_because(&world, 1), failed);
    // One that never starts ends, too.
    let patch = SettingsPatch { testing_timeout_minutes: Some(10), ..SettingsPatch::default() };
    let (mut world, checks) = under_test(patch, 1);
    report(&mut world, &checks, "test", Queued, None);
    world.wait(Span::minutes(40));
    world.take_in(&Fact::TimePassed);
    let failed = (FailReason::Timeout, vec!["no check has started within 40 minutes".to_owned()]);
    assert_eq!(failed_because(&world, 1), failed);
}

#[test]
fn an_automatic_timeout_follows_from_passing_runs() {
    let patch = SettingsPatch { automatic_testing_timeout: Some(true), ..SettingsPatch::default() };
    let (mut world, mut checks) = under_test(patch, 1);
    for pr in 2..=21 {
        report(&mut world, &checks, "test", InProgress, None);
        assert_eq!(next_deadline(&world.queue), Some(world.at.plus(Span::minutes(300))));
        world.wait(Span::minutes(10));
        ends(&mut world, &checks, Success);
        world.settle();
        world.submit(pr, None).expect("submitted");
        checks = next_checks(&mut world);
    }
    report(&mut world, &checks, "test", InProgress, None);
    // 10 minutes and a second, one and a half times.
    assert_eq!(next_deadline(&world.queue), Some(world.at.plus(Span::seconds(901))));
    let off = SettingsPatch { automatic_testing_timeout: Some(false), ..SettingsPatch::default() };
    set(&mut world, off);
    ends(&mut world, &checks, Success);
    assert_eq!(world.queue.header.passed_in, Vec::<u32>::new());
    assert_eq!(world.queue.mode(), Mode::Single);
}

/// The failure of a test that fails on the target branch itself.
fn by_red_target() -> FailureCause {
    let class = RetryClass::SeenElsewhere;
    FailureCause::Retry { class, evidence: vec!["adds".into()], on_target: true }
}

/// The checks of a run fail as on the target, when they run again as well.
fn meets_red_target(world: &mut World, checks: &RunChecks) {
    fails_by(world, checks, by_red_target());
    let again = next_checks(world);
    assert_eq!(again.run, checks.run, "it runs again first");
    fails_by(world, &again, by_red_target());
}

/// A pull request has met the red target.
fn held() -> World {
    let (mut world, checks) = under_test(SettingsPatch::default(), 1);
    meets_red_target(&mut world, &checks);
    assert_eq!(retries(&world), [(RetryClass::SeenElsewhere, 1)]);
    world
}

fn is_held(world: &World, pr: u32) -> bool {
    matches!(waits(world, pr), WaitReason::TargetRed { .. })
}

fn builds(world: &World) -> bool {
    world.outbox.iter().any(|it| matches!(it.effect, Effect::BuildCandidate(_)))
}

#[test]
fn a_red_target_holds_the_line_for_its_time_and_once_for_a_head() {
    let mut world = held();
    let (since, until) = (world.at, world.at.plus(Span::minutes(60)));
    let red = WaitReason::TargetRed { tests: vec!["adds".into()], since, until };
    assert_eq!((waits(&world, 1), next_deadline(&world.queue)), (red.clone(), Some(until)));
    world.submit(2, None).expect("accepted");
    world.outbox.clear();
    assert_eq!(waits(&world, 2), red, "no other run starts");
    world.wait(Span::minutes(59));
    world.take_in(&Fact::TimePassed);
    assert!(world.outbox.is_empty() && waits(&world, 1) == red, "{:?}", world.outbox);
    world.wait(Span::minutes(1));
    world.take_in(&Fact::TimePassed);
    assert!(builds(&world) && !is_held(&world, 1));

    // The target is still red: neither it nor the next one holds the line again.
    for pr in 1..=2 {
        let checks = next_checks(&mut world);
        assert_eq!(checks.prs, [PrNumber(pr)]);
        if pr == 1 {
            fails_by(&mut world, &checks, by_red_target());
        } else {
            meets_red_target(&mut world, &checks);
        }
        assert_eq!(failed_because(&world, pr).0, FailReason::RequiredStatus, "#{pr}");
    }
}

#[test]
fn a_target_that_moves_ends_the_hold_and_may_be_red_again() {
    let mut world = held();
    world.push_target();
    while let Some(fact) = world.facts.pop() {
        world.take_in(&fact);
    }
    assert!(builds(&world) && !is_held(&world, 1));
    let checks = next_checks(&mut world);
    fails_by(&mut world, &checks, by_red_target());
    assert!(is_held(&world, 1), "{:?}", waits(&world, 1));
}

#[test]
fn an_urgent_pull_request_is_tested_on_a_red_target() {
    let mut world = held();
    world.outbox.clear();
    world.submit(2, Some(0)).expect("accepted");
    let repair = next_checks(&mut world);
    assert_eq!(repair.prs, [PrNumber(2)]);
    assert!(is_held(&world, 1));
    let mut other = world.clone();
    ends(&mut world, &repair, Success);
    world.settle();
    assert_eq!(world.landed, [2, 1], "the repair ends the hold");
    // One that does not repair it fails, and the others are held as before.
    meets_red_target(&mut other, &repair);
    assert_eq!(failed_because(&other, 2).0, FailReason::RequiredStatus);
    assert!(is_held(&other, 1));
}

#[test]
fn a_run_ahead_that_lands_keeps_the_hold() {
    let (mut world, first) = under_test(SettingsPatch::default(), 2);
    let second = next_checks(&mut world);
    meets_red_target(&mut world, &second);
    assert!(is_held(&world, 2));
    ends(&mut world, &first, Success);
    run_until(&mut world, |effect| matches!(effect, Effect::Land(_)));
    let land = world.outbox.remove(0).effect;
    world.run(&land);
    let landed = world.facts.remove(0);
    world.take_in(&landed);
    assert_eq!(world.landed, [1]);
    assert!(is_held(&world, 2), "{:?}", waits(&world, 2));
}

#[test]
fn only_a_red_target_holds_and_the_setting_switches_it_off() {
    let off = SettingsPatch { red_target_hold_minutes: Some(0), ..SettingsPatch::default() };
    for (settings, second) in
        [(off.clone(), by_red_target()), (SettingsPatch::default(), by(RetryClass::SeenElsewhere))]
    {
        let (mut world, checks) = under_test(settings, 1);
        fails_by(&mut world, &checks, by_red_target());
        let again = next_checks(&mut world);
        fails_by(&mut world, &again, second);
        assert_eq!(failed_because(&world, 1).0, FailReason::RequiredStatus);
    }
    // Switched off while it holds.
    let mut world = held();
    update(&mut world, off, None);
    assert!(builds(&world) && !is_held(&world, 1));
}
