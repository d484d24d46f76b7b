//! Activation and resolution of monitors.

use signalbox_domain::flaky::TestStatus::{Broken, Flaky, Healthy};
use signalbox_domain::flaky::{
    AutoQuarantine, BranchClass, BranchPattern, BranchScope, Classification, Decision, EventKind,
    Fact, FailureRate, FailureStreak, IgnoredBecause, IncidentId, Monitor, MonitorId,
    MonitorStatus, Rule, StatusReason, Summary, Template,
};
use signalbox_domain::ids::RepoId;
use signalbox_domain::time::Span;
use uuid::Uuid;

use crate::scenario::{Scenario, count, flaky, monitor, rate};

#[test]
fn pass_on_retry_is_on_and_takes_results_in_any_order() {
    for first in [true, false] {
        let mut scenario = Scenario::by_default();
        scenario.run("pr/1", 1, first);
        assert_eq!(scenario.status(), Healthy);
        scenario.wait(72);
        scenario.run("pr/1", 1, !first);
        assert_eq!(scenario.status(), Flaky);
        assert_eq!(scenario.test.standing.reason, StatusReason::PassOnRetry);
        let text = scenario.test.standing.reason_text();
        assert_eq!(text, format!("pass_on_retry: failed and passed on commit {:040x}", 1));
    }
}

#[test]
fn what_belongs_to_an_incident_is_undone_unless_it_is_seen_without_it() {
    let mut scenario = Scenario::by_default();
    let began = scenario.now;
    scenario.run("main", 1, false);
    scenario.run("main", 1, true);
    assert_eq!(scenario.status(), Flaky);
    let incident = IncidentId(Uuid::nil());
    let recounted = |measured: Fact, since, counts| match measured {
        Fact::Measured { as_of, readings } => {
            Fact::Recounted { as_of, readings, incident, since, counts }
        }
        other => other,
    };
    let seen_again = recounted(scenario.measured(), began, false);
    assert!(scenario.absorb(&seen_again).empty, "another failure keeps the finding");
    scenario.runs.remove(0);
    let before_it = recounted(scenario.measured(), scenario.now, false);
    assert!(scenario.absorb(&before_it).empty, "it was found before the incident");
    let counted = recounted(scenario.measured(), began, true);
    assert!(scenario.absorb(&counted).empty, "nothing was undone");
    let undone = recounted(scenario.measured(), began, false);
    let done = scenario.absorb(&undone);
    assert_eq!(done.test.standing.value, Healthy);
    assert_eq!(done.test.standing.reason, StatusReason::Incident);
    assert_eq!(done.events.len(), 3, "the monitor, the status, and the status again");
}

#[test]
fn different_commits_may_disagree() {
    let mut scenario = Scenario::by_default();
    scenario.run("main", 1, true);
    scenario.run("main", 2, false);
    assert_eq!(scenario.status(), Healthy);
}

#[test]
fn a_commit_is_one_disagreement_on_however_many_branches_and_retries() {
    let mut scenario = Scenario::by_default();
    scenario.run("pr/1", 1, false);
    scenario.run("topic", 1, true);
    assert_eq!(scenario.measure().decisions.len(), 2, "the monitor and the status");
    scenario.wait(1);
    scenario.run("pr/1", 1, false);
    scenario.run("pr/1", 1, true);
    assert!(scenario.measure().empty);
    scenario.run("pr/1", 2, false);
    scenario.run("pr/1", 2, true);
    let renewed = scenario.measure();
    assert!(matches!(renewed.decisions[..], [Decision::MonitorRenewed { .. }]));
    assert!(renewed.events.is_empty());
}

#[test]
fn pass_on_retry_recovers_after_its_days_if_the_test_ran() {
    let mut scenario = Scenario::by_default();
    scenario.run("main", 1, false);
    scenario.run("main", 1, true);
    assert_eq!(scenario.status(), Flaky);
    scenario.wait(7 * 24 - 1);
    scenario.run("main", 2, true);
    assert_eq!(scenario.status(), Flaky, "too early");
    scenario.wait(1);
    assert_eq!(scenario.status(), Healthy);
    assert_eq!(scenario.test.standing.reason, StatusReason::Recovered);
}

/// A monitor of each kind that calls a test flaky.
fn one_of_each_kind() -> [Monitor; 4] {
    let always = |rule| monitor(7, Classification::Flaky, rule);
    [
        Monitor::pass_on_retry_of(RepoId(Uuid::from_u128(2))),
        always(rate(10, 5)),
        always(count(1, 24, 48)),
        always(Rule::FailureStreak(FailureStreak { streak: 5, window_hours: 168 })),
    ]
}

#[test]
fn a_test_that_does_not_run_does_not_heal() {
    for one in one_of_each_kind() {
        let mut scenario = Scenario::new(vec![one.clone()]);
        scenario.run("main", 1, false);
        scenario.run("main", 1, true);
        scenario.runs(10, 0);
        scenario.wait(4);
        scenario.runs(0, 10);
        assert_eq!(scenario.status(), Flaky);
        scenario.wait(44 * 24);
        assert_eq!(scenario.status(), Flaky, "{}", one.rule.kind().as_str());
        let stale = Monitor { stale_timeout_hours: Some(24), ..one };
        scenario.settings = scenario.settings.with_monitor(stale, scenario.now).expect("valid");
        assert_eq!(scenario.status(), Healthy, "its stale timeout is over");
        assert_eq!(scenario.test.standing.reason, StatusReason::Stale);
    }
}

#[test]
fn a_stale_timeout_begins_with_the_last_run() {
    for one in one_of_each_kind() {
        let kind = one.rule.kind().as_str();
        let stale = Monitor { stale_timeout_hours: Some(48), ..one };
        let mut scenario = Scenario::new(vec![stale]);
        scenario.run("main", 1, false);
        scenario.run("main", 1, true);
        scenario.runs(10, 0);
        scenario.wait(4);
        scenario.runs(0, 10);
        assert_eq!(scenario.status(), Flaky);
        scenario.wait(40);
        scenario.runs(0, 1);
        scenario.wait(40);
        assert_eq!(scenario.status(), Flaky, "{kind}: it ran 40 hours ago");
        scenario.wait(8);
        assert_eq!(scenario.status(), Healthy, "{kind}: it ran 48 hours ago");
    }
}

#[test]
fn a_window_ends_at_its_edge() {
    let mut scenario = flaky(count(1, 24, 24));
    scenario.run("main", 1, false);
    let (failed_at, summary) = (scenario.now, Summary::of(&scenario.runs));
    let day = failed_at.plus(Span::hours(24));
    let monitor = &scenario.settings.monitors[0];
    let activates = |at| monitor.preview(&summary, at).is_some();
    assert!(activates(day.minus(Span::MICROSECOND)));
    assert!(!activates(day));
}

#[test]
fn summaries_add_up() {
    let mut scenario = flaky(count(1, 24, 24));
    for (branch, commit) in [("main", 1), ("main", 2), ("other", 1), ("main", 1)] {
        scenario.run(branch, commit, commit == 1);
        scenario.run(branch, commit, false);
        scenario.now = scenario.now.plus(Span::minutes(3));
    }
    let whole = Summary::of(&scenario.runs);
    for at in 0..=scenario.runs.len() {
        let (earlier, later) = scenario.runs.split_at(at);
        let mut sum = Summary::of(earlier);
        sum.add(&Summary::of(later));
        sum.buckets
            .sort_by(|one, other| (one.start, &one.branch).cmp(&(other.start, &other.branch)));
        sum.codes.sort_by(|one, other| (&one.code, &one.branch).cmp(&(&other.code, &other.branch)));
        assert_eq!(sum, whole, "split after {at} runs");
    }
}

#[test]
fn a_changed_scope_of_pass_on_retry_holds_for_new_events_only() {
    let mut scenario = Scenario::by_default();
    scenario.run("main", 1, false);
    scenario.run("main", 1, true);
    assert_eq!(scenario.status(), Flaky);
    let narrow = Monitor {
        scope: BranchScope::class(BranchClass::PullRequest),
        ..scenario.settings.monitors[0].clone()
    };
    scenario.settings = scenario.settings.with_monitor(narrow, scenario.now).expect("valid");
    assert_eq!(scenario.status(), Flaky, "what was seen by the old scope stands");
    scenario.wait(24 * 7);
    scenario.run("main", 2, false);
    scenario.run("main", 2, true);
    assert_eq!(scenario.status(), Flaky, "no run in the new scope");
    scenario.run("pr/1", 3, true);
    assert_eq!(scenario.status(), Healthy, "main is out of scope");
}

#[test]
fn a_rate_needs_its_sample_and_both_thresholds() {
    let mut scenario = flaky(rate(20, 10));
    scenario.runs(0, 9);
    assert_eq!(scenario.status(), Healthy, "nine runs say nothing");
    scenario.runs(27, 0);
    assert_eq!(scenario.status(), Flaky, "9 of 36");
    scenario.runs(54, 0);
    assert_eq!(scenario.status(), Flaky, "9 of 90 is not below 10 %");
    scenario.runs(1, 0);
    assert_eq!(scenario.status(), Healthy, "9 of 91");
    scenario.runs(0, 5);
    assert_eq!(scenario.status(), Healthy, "14 of 96 lies between the thresholds");
    scenario.wait(24);
    assert_eq!(scenario.status(), Healthy, "all of it is out of the window");
}

#[test]
fn a_rate_pools_the_runs_of_its_scope_only() {
    let mut broken = Template::BrokenOnStable.monitor(MonitorId(Uuid::from_u128(7)));
    broken.scope.patterns = vec![BranchPattern("ma*".into()), BranchPattern("develop".into())];
    let mut scenario = Scenario::new(vec![broken]);
    for commit in 0..20 {
        scenario.run("pr/1", commit, false);
    }
    assert_eq!(scenario.status(), Healthy);
    for (branch, commit) in [("main", 21), ("master", 22), ("develop", 23), ("main", 24)] {
        scenario.run(branch, commit, false);
    }
    assert_eq!(scenario.status(), Healthy, "four runs");
    scenario.run("main", 25, false);
    assert_eq!(scenario.status(), Broken);
}

#[test]
fn a_streak_counts_failures_after_the_last_bucket_with_a_passing_run() {
    let streak = Rule::FailureStreak(FailureStreak { streak: 3, window_hours: 24 });
    let mut scenario = Scenario::new(vec![monitor(7, Classification::Broken, streak)]);
    scenario.runs(1, 9);
    assert_eq!(scenario.status(), Healthy, "when in the bucket it passed is unknown");
    scenario.wait(1);
    scenario.runs(0, 2);
    assert_eq!(scenario.status(), Healthy, "two");
    scenario.wait(5);
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Broken);
    assert_eq!(scenario.test.standing.reason_text(), "failure_streak: the last 3 runs failed");
    scenario.wait(48);
    assert_eq!(scenario.status(), Broken, "it did not run");
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Broken);
    scenario.runs(1, 0);
    assert_eq!(scenario.status(), Healthy);
    assert_eq!(scenario.test.standing.reason, StatusReason::Recovered);
}

#[test]
fn a_streak_ends_at_the_edge_of_its_window() {
    for (minutes, expected) in [(235, Flaky), (240, Healthy)] {
        let mut scenario = flaky(Rule::FailureStreak(FailureStreak { streak: 2, window_hours: 4 }));
        scenario.runs(0, 2);
        scenario.now = scenario.now.plus(Span::minutes(minutes));
        assert_eq!(scenario.status(), expected, "{minutes} minutes");
    }
}

#[test]
fn every_kind_of_monitor_says_what_it_saw() {
    let expected: [&[&str]; 4] = [
        &["last_disagreement_at", "maybe", "runs"],
        &["runs", "failures", "failing_times"],
        &["failures", "last_failure_at"],
        &["runs", "failures"],
    ];
    for (one, expected) in one_of_each_kind().into_iter().zip(expected) {
        let mut scenario = Scenario::by_default();
        scenario.settings.monitors = vec![one];
        scenario.run("main", 1, false);
        let Fact::Measured { readings, .. } = scenario.measured() else { panic!("a measurement") };
        let [(_, reading)] = readings.as_slice() else { panic!("{readings:?}") };
        let names: Vec<&str> = reading.evidence().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, expected);
    }
}

/// A test that is flaky once it has failed at two separate times within two days.
fn failing_twice() -> Scenario {
    flaky(Rule::FailureRate(FailureRate {
        activation_percent: 10,
        resolution_percent: 5,
        window_hours: 48,
        min_sample: 10,
        min_failing_times: 2,
    }))
}

#[test]
fn a_test_that_was_broken_failed_at_one_time() {
    let mut scenario = failing_twice();
    for hour in 0..20 {
        scenario.runs(u32::from(!(5..12).contains(&hour)), u32::from((5..12).contains(&hour)));
        scenario.wait(1);
        assert_eq!(scenario.status(), Healthy, "hour {hour}");
    }
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Flaky, "it failed a second time");
    let text = "failure_rate: 8 of 21 runs failed, at 2 separate times";
    assert_eq!(scenario.test.standing.reason_text(), text);
}

#[test]
fn a_bug_of_one_platform_fails_at_one_time() {
    let mut scenario = failing_twice();
    // A bucket is an hour long: the passing and the failing job of a commit are in different ones.
    for hour in 0..20 {
        scenario.runs(u32::from(hour % 2 == 0), u32::from(hour % 2 == 1));
        scenario.wait(1);
        assert_eq!(scenario.status(), Healthy, "hour {hour}");
    }
    scenario.runs(3, 0);
    scenario.wait(1);
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Flaky, "it passed three times in between");
}

/// A test that pass on retry and the monitor of a template watch.
fn by_template(template: Template) -> Scenario {
    let monitor = template.monitor(MonitorId(Uuid::from_u128(9)));
    Scenario::new(vec![Monitor::pass_on_retry_of(RepoId(Uuid::from_u128(2))), monitor])
}

#[test]
fn the_template_for_broken_tests_finds_a_test_that_always_fails_on_main() {
    let mut scenario = by_template(Template::BrokenOnStable);
    // Two runs a day.
    for day in 0..10 {
        let broken = day >= 5;
        for _ in 0..2 {
            scenario.runs(u32::from(!broken), u32::from(broken));
            scenario.run("pr/1", 9_000 + day, false);
            scenario.wait(12);
        }
        let expected = if day < 7 { Healthy } else { Broken };
        assert_eq!(scenario.status(), expected, "day {day}");
    }
    assert_eq!(scenario.test.standing.reason, StatusReason::FailureStreak);
    scenario.runs(1, 0);
    assert_eq!(scenario.status(), Healthy, "it was broken at one time, and not flaky");
}

#[test]
fn the_template_for_flaky_tests_needs_no_retry() {
    let mut scenario = by_template(Template::FlakyOnStable);
    for run in 0..40 {
        let fails = [4, 13, 22, 33].contains(&run);
        scenario.runs(u32::from(!fails), u32::from(fails));
        scenario.wait(4);
        assert_eq!(scenario.status(), if run < 33 { Healthy } else { Flaky }, "run {run}");
    }
    assert_eq!(scenario.test.standing.reason, StatusReason::FailureRate);
}

#[test]
fn a_count_is_instant_and_every_failure_restarts_its_timeout() {
    let mut scenario = flaky(count(2, 24, 48));
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Healthy);
    scenario.wait(25);
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Healthy, "never two within a day");
    scenario.wait(1);
    scenario.runs(500, 1);
    assert_eq!(scenario.status(), Flaky);
    scenario.wait(47);
    scenario.runs(1, 1);
    scenario.wait(2);
    assert_eq!(scenario.status(), Flaky, "it failed again two hours ago");
    scenario.wait(46);
    assert_eq!(scenario.status(), Flaky, "it did not run since");
    scenario.runs(1, 0);
    assert_eq!(scenario.status(), Healthy);
}

#[test]
fn broken_beats_flaky_and_each_monitor_must_resolve() {
    let mut scenario = Scenario::new(vec![
        monitor(1, Classification::Flaky, rate(10, 10)),
        monitor(2, Classification::Broken, rate(80, 80)),
    ]);
    scenario.runs(0, 10);
    assert_eq!(scenario.status(), Broken);
    scenario.runs(10, 0);
    let better = scenario.measure();
    assert_eq!(better.test.standing.value, Flaky);
    assert_eq!(better.test.standing.monitor, Some(MonitorId(Uuid::from_u128(1))));
    let Some(EventKind::StatusChangedV2 { previous, new, triggered_by }) =
        better.events.last().map(|event| event.kind.clone())
    else {
        panic!("{:?}", better.events)
    };
    assert_eq!((previous, new), (Broken, Flaky));
    assert_eq!(triggered_by.monitor, Some(MonitorId(Uuid::from_u128(2))));
    assert_eq!(triggered_by.status, MonitorStatus::Resolved);
    scenario.runs(100, 0);
    assert_eq!(scenario.status(), Healthy);
}

#[test]
fn events_tell_the_monitor_first_and_then_the_status_in_both_forms() {
    let mut scenario = flaky(count(1, 24, 24));
    scenario.settings.quarantine.enabled = true;
    scenario.settings.quarantine.auto = AutoQuarantine::from_switch(true);
    scenario.runs(0, 1);
    let events = scenario.measure().events;
    let names: Vec<_> = events.iter().map(|it| (it.number, it.kind.name())).collect();
    assert_eq!(
        names,
        [
            (1, "test_case.monitor_status_changed"),
            (2, "test_case.status_changed"),
            (3, "v2.test_case.status_changed")
        ]
    );
    assert!(events.iter().all(|it| it.quarantined), "the state after what happened");
}

#[test]
fn a_measurement_that_is_repeated_or_late_changes_nothing() {
    let mut scenario = flaky(count(1, 24, 24));
    let early = scenario.measured();
    scenario.runs(0, 1);
    let late = scenario.measured();
    assert_eq!(scenario.absorb(&late).test.standing.value, Flaky);
    for (fact, because) in [(late, IgnoredBecause::Known), (early, IgnoredBecause::Superseded)] {
        let before = scenario.test.clone();
        let done = scenario.absorb(&fact);
        assert_eq!(done.decisions, [Decision::Ignored { because }]);
        assert_eq!(done.test, before);
    }
}
