//! Which failures and successes of one commit are compared.

use signalbox_domain::flaky::TestStatus::{Flaky, Healthy};
use signalbox_domain::flaky::{Base, Decision, Fact, Origin, StatusReason, next_deadline};

use crate::scenario::Scenario;

fn job(name: &str) -> Origin {
    Origin::new(Some(&[name]), Base::Itself)
}

fn merged(base: Base<'_>) -> Origin {
    Origin::new(Some(&["unit"]), base)
}

/// A failure and a success of origins that may differ, in the same bucket.
fn doubtful(scenario: &mut Scenario, branch: &str, commit: u32) {
    scenario.run_of(Origin::default(), branch, commit, false);
    scenario.run_of(Origin::default(), branch, commit, true);
}

/// Passing runs of a day.
fn green_day(scenario: &mut Scenario) {
    for _ in 0..4 {
        scenario.wait(6);
        scenario.runs(1, 0);
    }
}

#[test]
fn a_bug_of_one_platform_is_no_flake() {
    let mut scenario = Scenario::by_default();
    for commit in 0..20 {
        scenario.run_of(job("linux"), "main", commit, true);
        scenario.run_of(job("windows"), "main", commit, false);
        scenario.wait(3);
        assert_eq!(scenario.status(), Healthy);
    }
    assert_eq!(scenario.test.standing.reason, StatusReason::NothingFound);
    scenario.run_of(job("windows"), "main", 20, false);
    scenario.run_of(job("windows"), "main", 20, true);
    assert_eq!(scenario.status(), Flaky, "on one platform");
}

#[test]
fn a_pull_request_on_a_broken_base_is_no_flake() {
    let mut scenario = Scenario::by_default();
    scenario.run_of(merged(Base::Merged("a")), "pr/1", 1, true);
    scenario.run_of(merged(Base::Merged("b")), "pr/1", 1, false);
    scenario.run_of(merged(Base::Itself), "pr/1", 1, true);
    assert_eq!(scenario.status(), Healthy);
    assert_eq!(scenario.test.standing.reason, StatusReason::NothingFound);
    scenario.run_of(merged(Base::Merged("b")), "pr/1", 1, true);
    assert_eq!(scenario.status(), Flaky, "on one base");
}

#[test]
fn two_uploads_of_one_attempt_are_doubtful_and_a_second_attempt_is_a_retry() {
    let attempt = |number| job("unit").in_attempt(&["12", number]);
    let mut scenario = Scenario::by_default();
    scenario.run_of(attempt("1"), "main", 1, false);
    scenario.run_of(attempt("1"), "main", 1, true);
    assert_eq!(scenario.status(), Healthy, "they may be matrix entries");
    assert_eq!(scenario.test.standing.reason, StatusReason::MaybePlatformOrBase);
    scenario.run_of(attempt("2"), "main", 1, true);
    assert_eq!(scenario.status(), Healthy, "which entry passed is unknown");
    scenario.run_of(attempt("1"), "main", 2, false);
    scenario.run_of(attempt("2"), "main", 2, true);
    assert_eq!(scenario.status(), Flaky);
}

#[test]
fn a_doubtful_disagreement_is_a_suspicion_for_the_recovery_days() {
    let mut scenario = Scenario::by_default();
    doubtful(&mut scenario, "main", 1);
    let done = scenario.measure();
    assert_eq!(done.test.standing.value, Healthy);
    assert_eq!(done.test.standing.reason, StatusReason::MaybePlatformOrBase);
    assert!(matches!(done.decisions[..], [Decision::ReasonChanged { .. }]));
    assert!(done.events.is_empty(), "the status is the same");
    let text = done.test.standing.reason_text();
    let commit = format!("{:040x}", 1);
    assert_eq!(
        text,
        format!(
            "maybe_platform_or_base: failed and passed on commit {commit}; maybe: platform or base"
        )
    );
    assert!(scenario.measure().empty, "it is known");
    let end = next_deadline(&scenario.test).expect("it ends");
    scenario.now = end;
    let done = scenario.absorb(&Fact::TimePassed);
    assert_eq!(done.test.standing.reason, StatusReason::NothingFound);
    assert_eq!(done.test.standing.evidence, None);
    assert_eq!(next_deadline(&scenario.test), None);
}

#[test]
fn a_second_doubtful_disagreement_after_passing_runs_counts() {
    let mut scenario = Scenario::by_default();
    doubtful(&mut scenario, "main", 1);
    assert_eq!(scenario.status(), Healthy);
    green_day(&mut scenario);
    doubtful(&mut scenario, "main", 1);
    assert_eq!(scenario.status(), Healthy, "the same commit again");
    scenario.wait(6);
    doubtful(&mut scenario, "main", 2);
    assert_eq!(scenario.status(), Flaky);
    assert_eq!(scenario.test.standing.reason, StatusReason::PassOnRetry);
    let text = scenario.test.standing.reason_text();
    assert!(text.ends_with(", as on another commit before"), "{text}");
    green_day(&mut scenario);
    doubtful(&mut scenario, "main", 3);
    let renewed = scenario.measure();
    assert!(matches!(renewed.decisions[..], [Decision::MonitorRenewed { .. }]));
    scenario.wait(7 * 24);
    scenario.runs(1, 0);
    assert_eq!(scenario.status(), Healthy);
    assert_eq!(scenario.test.standing.reason, StatusReason::Recovered);
}

#[test]
fn a_bug_of_an_unknown_platform_is_one_disagreement_until_it_is_fixed() {
    let mut scenario = Scenario::by_default();
    for commit in 0..20 {
        doubtful(&mut scenario, "main", commit);
        scenario.wait(5);
        assert_eq!(scenario.status(), Healthy);
    }
    assert_eq!(scenario.test.standing.reason, StatusReason::MaybePlatformOrBase);
}

#[test]
fn doubtful_disagreements_of_one_pull_request_count_once() {
    let mut scenario = Scenario::by_default();
    for commit in 0..4 {
        doubtful(&mut scenario, "pr/1", commit);
        green_day(&mut scenario);
        assert_eq!(scenario.status(), Healthy);
    }
    doubtful(&mut scenario, "pr/2", 9);
    assert_eq!(scenario.status(), Flaky);
}

#[test]
fn too_old_a_doubtful_disagreement_supports_nothing() {
    let mut scenario = Scenario::by_default();
    doubtful(&mut scenario, "main", 1);
    for _ in 0..8 {
        green_day(&mut scenario);
    }
    doubtful(&mut scenario, "main", 2);
    assert_eq!(scenario.status(), Healthy);
}
