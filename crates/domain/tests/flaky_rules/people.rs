//! What people decide about a test.

use signalbox_domain::flaky::TestStatus::{Flaky, Healthy};
use signalbox_domain::flaky::{
    Action, Actor, Classification, Command, Decision, EventKind, Fact, LabelSource, MonitorCause,
    MuteLength, QuarantineOverride, Refusal, StatusReason, TriggerKind, next_deadline,
};
use signalbox_domain::time::Span;

use crate::lab::{Lab, by, count, flaky, monitor, start};

#[test]
fn a_flag_adds_to_what_monitors_say() {
    let mut lab = flaky(count(1, 24, 24));
    let flag = |reason: &str| Command::Flag { reason: Some(reason.into()), by: by() };
    assert!(lab.ask(&flag(&"x".repeat(257))).is_err());
    let flagged = lab.ask(&flag("fails on Fridays")).expect("flagged");
    assert_eq!(flagged.test.standing.reason, StatusReason::FlaggedByHand);
    assert_eq!(lab.ask(&flag("again")), Err(Refusal::AlreadyFlagged));
    lab.runs(0, 1);
    assert!(lab.measure().decisions.iter().all(|it| !matches!(it, Decision::StatusChanged { .. })));
    let since = lab.test.standing.since;
    let unflag = Command::Unflag { reason: None, by: by() };
    let unflagged = lab.ask(&unflag).expect("unflagged").test.standing;
    assert_eq!((unflagged.value, unflagged.reason), (Flaky, StatusReason::FailureCount));
    assert_eq!(unflagged.since, since, "the status is the same");
    assert_eq!(lab.ask(&unflag), Err(Refusal::NotFlagged));
}

#[test]
fn taking_a_flag_back_says_so() {
    let mut lab = Lab::by_default();
    lab.ask(&Command::Flag { reason: None, by: by() }).expect("flagged");
    let done = lab.ask(&Command::Unflag { reason: None, by: by() }).expect("unflagged");
    assert_eq!(done.test.standing.reason, StatusReason::FlagRemoved);
    let Some(EventKind::StatusChangedV2 { triggered_by, .. }) =
        done.events.last().map(|it| it.kind.clone())
    else {
        panic!("{:?}", done.events)
    };
    assert_eq!((triggered_by.monitor, triggered_by.kind), (None, TriggerKind::ManualFlag));
}

#[test]
fn a_muted_monitor_keeps_watching_and_counts_again_later() {
    let mut lab = flaky(count(1, 24, 24));
    let monitor = lab.settings.monitors[0].id;
    assert_eq!(lab.mute(MuteLength::Hour), Err(Refusal::MonitorNeverFired { monitor }));
    lab.runs(0, 1);
    assert_eq!(lab.status(), Flaky);
    lab.mute(MuteLength::FourHours).expect("muted");
    assert_eq!(lab.test.standing.reason, StatusReason::MonitorMuted);
    assert_eq!(lab.status(), Healthy);
    assert_eq!(
        next_deadline(&lab.test),
        Some(lab.now.minus(Span::minutes(1)).plus(Span::hours(4)))
    );
    lab.wait(4);
    let over = lab.absorb(&Fact::TimePassed);
    assert_eq!(over.test.standing.value, Flaky);
    assert_eq!(over.decisions[0], Decision::Unmuted { monitor, by: Actor::system() });
    assert!(lab.absorb(&Fact::TimePassed).empty);
    lab.mute(MuteLength::Forever).expect("muted");
    assert_eq!(next_deadline(&lab.test), None);
    lab.wait(24);
    lab.runs(1, 0);
    let moved = lab.measure().decisions;
    let recovered =
        |it: &Decision| matches!(it, Decision::MonitorMoved { cause: MonitorCause::Recovered, .. });
    assert!(moved.iter().any(recovered), "muted monitors resolve as well");
    lab.ask(&Command::Unmute { monitor, by: by() }).expect("unmuted");
    assert_eq!(lab.test.standing.value, Healthy);
}

#[test]
fn a_monitor_that_labels_is_a_dry_run() {
    let mut label = monitor(7, Classification::Flaky, count(1, 24, 24));
    label.action = Action::Label { labels: vec!["shaky".into()], remove_when_resolved: true };
    let mut lab = Lab::new(vec![label]);
    lab.runs(0, 1);
    assert_eq!(lab.status(), Healthy);
    let add = Command::AddLabel { label: "shaky".into(), by: by() };
    lab.ask(&add).expect("added");
    assert_eq!(lab.test.labels["shaky"].len(), 2);
    lab.wait(24);
    lab.runs(1, 0);
    lab.measure();
    assert!(lab.test.labels["shaky"].iter().eq([&LabelSource::Person]), "people hold it still");
    lab.ask(&Command::RemoveLabel { label: "shaky".into(), by: by() }).expect("removed");
    assert!(lab.test.labels.is_empty());
}

#[test]
fn an_override_is_told_with_its_actor_and_ends_when_it_expires() {
    let mut lab = Lab::by_default();
    lab.settings.quarantine.enabled = true;
    let end = lab.now.plus(Span::hours(5));
    let always = lab.set_quarantine(QuarantineOverride::Always, Some(end)).expect("set");
    let [event] = always.events.as_slice() else { panic!("{:?}", always.events) };
    let EventKind::QuarantiningSettingChanged { actor, previous, updated, .. } = &event.kind else {
        panic!("{event:?}")
    };
    assert_eq!(actor, &by());
    let (from, to) = (QuarantineOverride::Follow, QuarantineOverride::Always);
    assert_eq!((*previous, *updated, event.quarantined), (from, to, true));
    assert!(lab.set_quarantine(to, Some(end)).expect("known").empty);
    let longer = end.plus(Span::hours(1));
    let prolonged = lab.set_quarantine(to, Some(longer)).expect("set");
    assert_eq!(
        (prolonged.decisions.len(), prolonged.events.len()),
        (1, 0),
        "the setting is the same"
    );
    assert!(!lab.set_quarantine(to, Some(end)).expect("set").empty);
    assert!(!lab.test.is_quarantined(&lab.settings, end), "also before anybody noticed");
    assert_eq!(next_deadline(&lab.test), Some(end));
    lab.wait(5);
    let over = lab.absorb(&Fact::TimePassed);
    assert_eq!(over.events.len(), 1);
    assert!(!over.events[0].quarantined);
    assert_eq!(next_deadline(&lab.test), None);
}

#[test]
fn only_always_may_expire_and_only_later() {
    let mut lab = Lab::by_default();
    let later = Some(lab.now.plus(Span::hours(1)));
    for setting in [QuarantineOverride::Never, QuarantineOverride::Follow] {
        assert!(lab.set_quarantine(setting, later).is_err());
    }
    assert!(lab.set_quarantine(QuarantineOverride::Always, Some(start())).is_err());
}

#[test]
fn labels_have_bounds() {
    let check = |labels: Vec<String>| {
        let mut label = monitor(7, Classification::Flaky, count(1, 24, 24));
        label.action = Action::Label { labels, remove_when_resolved: true };
        label.check().is_ok()
    };
    let name = |length: usize| "x".repeat(length);
    assert!(check(vec![name(1)]) && check(vec![name(100)]) && check(vec![name(2); 10]));
    for bad in [vec![], vec![name(1); 11], vec![name(0)], vec![name(101)]] {
        assert!(!check(bad.clone()), "{bad:?}");
    }
}
