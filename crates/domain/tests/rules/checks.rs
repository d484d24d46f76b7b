//! Several reports of one check: the one that counts.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Check, CheckConclusion, CheckStatus, Decision, Effect, Fact, IgnoredBecause, PrState,
    SettingsPatch,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::reasons::set;
use crate::{is_checks, run_until, world};

use CheckConclusion::{Failure, Success};
use CheckStatus::{Completed, InProgress, Queued};

/// A report of a check: its name, status, conclusion, and the minute of the report.
type Report = (&'static str, CheckStatus, Option<CheckConclusion>, u32);

const A_BEGINS: Report = ("a", InProgress, None, 10);
const B_PASSES: Report = ("b", Completed, Some(Success), 10);

const fn a(status: CheckStatus, conclusion: Option<CheckConclusion>, minute: u32) -> Report {
    ("a", status, conclusion, minute)
}

/// The state of a pull request that requires `a` and `b`, after these reports one by one.
fn after(reports: &[Report], read: bool) -> PrState {
    let mut world: World = world(1, Rules::default());
    let names = vec!["a".to_owned(), "b".to_owned()];
    set(&mut world, SettingsPatch { required_statuses: Some(names), ..SettingsPatch::default() });
    world.submit(1, None).expect("submitted");
    run_until(&mut world, is_checks);
    let Effect::RunChecks(checks) = world.outbox.remove(0).effect else { panic!("no checks") };
    let start = world.at;
    world.wait(Span::minutes(30));
    for (name, status, conclusion, minute) in reports {
        let report = Check {
            name: (*name).to_owned(),
            status: *status,
            conclusion: *conclusion,
            url: String::new(),
            summary: None,
            at: start.plus(Span::minutes(*minute)),
            excused: Vec::new(),
        };
        let (run, sha) = (checks.run, checks.candidate.sha.clone());
        world.take_in(&Fact::ChecksReported { run, sha, checks: vec![report], read });
    }
    world.queue.entry_of(PrNumber(1)).map_or(PrState::Failed, |entry| entry.state.name())
}

#[test]
fn the_latest_report_of_a_check_counts() {
    for read in [true, false] {
        let later = [A_BEGINS, a(Completed, Some(Success), 11), B_PASSES];
        assert_eq!(after(&later, read), PrState::TestsPassed);
        let at_once = [A_BEGINS, a(Completed, Some(Success), 10), B_PASSES];
        assert_eq!(after(&at_once, read), PrState::TestsPassed);
        let failed = [A_BEGINS, a(Completed, Some(Failure), 11)];
        assert_eq!(after(&failed, read), PrState::Failed);
        let still_queued = [a(Queued, None, 10), B_PASSES];
        assert_eq!(after(&still_queued, read), PrState::Testing);
    }
}

#[test]
fn an_older_report_of_the_host_changes_nothing() {
    let older = [A_BEGINS, a(Completed, Some(Success), 9), B_PASSES];
    assert_eq!(after(&older, true), PrState::Testing);
    let old_failure = [a(Completed, Some(Success), 10), a(Completed, Some(Failure), 9)];
    assert_eq!(after(&old_failure, true), PrState::Testing);
    let back_in_time = [a(Completed, Some(Success), 10), a(InProgress, None, 10), B_PASSES];
    assert_eq!(after(&back_in_time, true), PrState::TestsPassed);
}

#[test]
fn only_a_read_of_the_host_turns_a_success_back_to_pending() {
    let again = [a(Completed, Some(Success), 10), a(InProgress, None, 11), B_PASSES];
    assert_eq!(after(&again, true), PrState::Testing, "another run of the check has begun");
    assert_eq!(after(&again, false), PrState::TestsPassed, "a runner without its lease");
}

#[test]
fn a_late_result_of_a_runner_still_completes_its_check() {
    let late = [A_BEGINS, a(Completed, Some(Success), 9), B_PASSES];
    assert_eq!(after(&late, false), PrState::TestsPassed);
    let corrected = [a(Completed, Some(Success), 10), a(Completed, Some(Failure), 9)];
    assert_eq!(after(&corrected, false), PrState::Testing, "the first result counts");
    let worse = [a(Completed, Some(Success), 10), a(Completed, Some(Failure), 11)];
    assert_eq!(after(&worse, false), PrState::Failed, "a later result replaces it");
}

#[test]
fn a_repeated_report_is_ignored() {
    let mut world: World = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    run_until(&mut world, is_checks);
    let Effect::RunChecks(checks) = world.outbox.remove(0).effect else { panic!("no checks") };
    let begins = Check {
        name: "test".into(),
        status: InProgress,
        conclusion: None,
        url: String::new(),
        summary: None,
        at: world.at,
        excused: Vec::new(),
    };
    let (run, sha) = (checks.run, checks.candidate.sha);
    let report = Fact::ChecksReported { run, sha, checks: vec![begins], read: false };
    world.take_in(&report);
    world.take_in(&report);
    let because = IgnoredBecause::Known;
    assert_eq!(world.decisions, [Decision::Ignored { because }]);
}

#[test]
fn an_excused_failure_is_in_the_journal_with_who_excused_it() {
    let mut world: World = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    run_until(&mut world, is_checks);
    let Effect::RunChecks(checks) = world.outbox.remove(0).effect else { panic!("no checks") };
    let tests = vec!["adds (quarantined by ada)".to_owned()];
    let passed = Check {
        name: "test".into(),
        status: Completed,
        conclusion: Some(Success),
        url: String::new(),
        summary: None,
        at: world.at,
        excused: tests.clone(),
    };
    let (run, sha) = (checks.run, checks.candidate.sha);
    let report = Fact::ChecksReported { run, sha, checks: vec![passed], read: false };
    world.take_in(&report);
    let excused = Decision::Excused { run, check: "test".into(), tests };
    assert!(world.decisions.contains(&excused), "{:?}", world.decisions);
    world.take_in(&report);
    assert!(!world.decisions.contains(&excused), "once");
}
