//! The checks of the invariants detect violations: each is made on a state that violates it.

use std::collections::BTreeSet;

use signalbox_domain::flaky::{
    LabelSource, MonitorId, MonitorStatus, Mute, Origin, QuarantineDecision, QuarantineOverride,
    Quarantining, StatusReason, Suspicion, TestCase, TestId, TestStatus, check_invariants,
};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use crate::scenario::{Scenario, by, count, flaky};

/// A flaky test with an active monitor.
fn active() -> Scenario {
    let mut scenario = flaky(count(1, 24, 24));
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), TestStatus::Flaky);
    assert_eq!(check_invariants(&scenario.test, &scenario.settings), [], "before the change");
    scenario
}

/// The ids of the invariants that a change of a flaky test violates.
fn violated(change: impl FnOnce(&mut TestCase)) -> Vec<&'static str> {
    let Scenario { settings, mut test, .. } = active();
    change(&mut test);
    check_invariants(&test, &settings).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn f1_sees_a_status_that_does_not_follow() {
    assert_eq!(violated(|test| test.standing.value = TestStatus::Broken), ["F1", "F1"]);
    assert_eq!(violated(|test| test.standing.value = TestStatus::Healthy), ["F1", "F1"]);
}

#[test]
fn f1_sees_a_reason_that_explains_nothing() {
    assert_eq!(violated(|test| test.standing.reason = StatusReason::FlaggedByHand), ["F1"]);
    assert_eq!(violated(|test| test.standing.reason = StatusReason::Recovered), ["F1"]);
    assert_eq!(violated(|test| test.standing.monitor = None), ["F1"]);
    let mut healthy = flaky(count(1, 24, 24));
    healthy.measure();
    healthy.test.standing.reason = StatusReason::FailureCount;
    let seen = check_invariants(&healthy.test, &healthy.settings);
    assert_eq!(seen.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["F1"]);
}

fn decided(setting: QuarantineOverride, expires_at: Option<Timestamp>) -> QuarantineDecision {
    let quarantining = Quarantining { setting, expires_at };
    QuarantineDecision { quarantining, reason: None, by: by(), at: crate::scenario::start() }
}

#[test]
fn f6_sees_an_override_that_has_expired_or_must_not() {
    let later = |test: &TestCase| Some(test.changed_at.plus(Span::hours(1)));
    let always = |test: &mut TestCase, end| {
        test.quarantine = Some(decided(QuarantineOverride::Always, end));
    };
    assert_eq!(violated(|test| always(test, later(test))), [""; 0]);
    assert_eq!(violated(|test| always(test, Some(test.changed_at))), ["F6"]);
    for setting in [QuarantineOverride::Never, QuarantineOverride::Follow] {
        let seen = violated(|test| test.quarantine = Some(decided(setting, later(test))));
        assert_eq!(seen, ["F6"], "{setting:?}");
    }
}

#[test]
fn f9_sees_an_active_monitor_that_does_not_work() {
    let unknown = MonitorId(Uuid::from_u128(99));
    let of_unknown = |status| {
        move |test: &mut TestCase| {
            let mut record = test.monitors.values().next().expect("a record").clone();
            record.status = status;
            test.monitors.insert(unknown, record);
        }
    };
    assert_eq!(violated(of_unknown(MonitorStatus::Active)), ["F9"]);
    assert_eq!(violated(of_unknown(MonitorStatus::Resolved)), [""; 0]);
}

#[test]
fn f9_sees_a_mute_that_is_over() {
    let muted = |minutes: u32| {
        let Scenario { settings, mut test, .. } = active();
        let until = Some(test.changed_at.plus(Span::minutes(minutes)));
        let record = test.monitors.values_mut().next().expect("a record");
        record.status = MonitorStatus::Resolved;
        record.mute = Some(Mute { until, reason: None, by: by(), at: test.changed_at });
        let seen = check_invariants(&test, &settings);
        seen.into_iter().filter(|(id, _)| *id == "F9").count()
    };
    assert_eq!((muted(0), muted(1)), (1, 0));
}

#[test]
fn f9_sees_a_label_without_a_source() {
    let held = |sources: &[LabelSource]| {
        let sources: BTreeSet<LabelSource> = sources.iter().copied().collect();
        violated(|test| drop(test.labels.insert("shaky".into(), sources)))
    };
    assert_eq!(held(&[]), ["F9"]);
    assert_eq!(held(&[LabelSource::Monitor(MonitorId(Uuid::from_u128(99)))]), ["F9"]);
    assert_eq!(held(&[LabelSource::Person]), [""; 0]);
    assert_eq!(held(&[LabelSource::Monitor(MonitorId(Uuid::from_u128(7)))]), [""; 0]);
}

#[test]
fn f9_sees_an_id_that_is_not_that_of_the_key() {
    assert_eq!(violated(|test| test.id = TestId(Uuid::from_u128(1))), ["F9"]);
}

#[test]
fn f9_sees_a_suspicion_that_is_over_or_of_no_monitor() {
    let mut scenario = Scenario::by_default();
    for passed in [false, true] {
        scenario.run_of(Origin::default(), "main", 1, passed);
    }
    assert_eq!(scenario.status(), TestStatus::Healthy);
    let seen = |change: fn(&mut Suspicion, Timestamp)| {
        let mut test = scenario.test.clone();
        let at = test.changed_at;
        change(test.suspicion.as_mut().expect("a suspicion"), at);
        let found = check_invariants(&test, &scenario.settings);
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(seen(|_, _| ()), [""; 0]);
    assert_eq!(seen(|it, at| it.until = at), ["F9"]);
    assert_eq!(seen(|it, _| it.monitor = MonitorId(Uuid::from_u128(99))), ["F9"]);
}
