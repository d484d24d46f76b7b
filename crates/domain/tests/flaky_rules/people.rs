//! What people decide about a test.

use signalbox_domain::flaky::TestStatus::{Flaky, Healthy};
use signalbox_domain::flaky::{
    Action, Actor, AutoQuarantine, Classification, Command, Decision, EventKind, Fact, LabelSource,
    MonitorCause, MuteLength, QuarantineOverride, RELEASE_DAYS, Refusal, SettingsPatch,
    StatusReason, TriggerKind, can_be_released, is_known_quarantined, next_deadline,
};
use signalbox_domain::time::Span;

use crate::scenario::{Scenario, by, count, flaky, monitor, start};

#[test]
fn a_flag_adds_to_what_monitors_say() {
    let mut scenario = flaky(count(1, 24, 24));
    let flag = |reason: &str| Command::Flag { reason: Some(reason.into()), by: by() };
    assert!(scenario.ask(&flag(&"x".repeat(257))).is_err());
    let flagged = scenario.ask(&flag("fails on Fridays")).expect("flagged");
    assert_eq!(flagged.test.standing.reason, StatusReason::FlaggedByHand);
    assert_eq!(scenario.ask(&flag("again")), Err(Refusal::AlreadyFlagged));
    scenario.runs(0, 1);
    assert!(
        scenario.measure().decisions.iter().all(|it| !matches!(it, Decision::StatusChanged { .. }))
    );
    let since = scenario.test.standing.since;
    let unflag = Command::Unflag { reason: None, by: by() };
    let unflagged = scenario.ask(&unflag).expect("unflagged").test.standing;
    assert_eq!((unflagged.value, unflagged.reason), (Flaky, StatusReason::FailureCount));
    assert_eq!(unflagged.since, since, "the status is the same");
    assert_eq!(scenario.ask(&unflag), Err(Refusal::NotFlagged));
}

#[test]
fn removing_a_flag_is_recorded() {
    let mut scenario = Scenario::by_default();
    scenario.ask(&Command::Flag { reason: None, by: by() }).expect("flagged");
    let done = scenario.ask(&Command::Unflag { reason: None, by: by() }).expect("unflagged");
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
    let mut scenario = flaky(count(1, 24, 24));
    let monitor = scenario.settings.monitors[0].id;
    assert_eq!(scenario.mute(MuteLength::Hour), Err(Refusal::MonitorNeverFired { monitor }));
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Flaky);
    scenario.mute(MuteLength::FourHours).expect("muted");
    assert_eq!(scenario.test.standing.reason, StatusReason::MonitorMuted);
    assert_eq!(scenario.status(), Healthy);
    assert_eq!(
        next_deadline(&scenario.test),
        Some(scenario.now.minus(Span::minutes(1)).plus(Span::hours(4)))
    );
    scenario.wait(4);
    let over = scenario.absorb(&Fact::TimePassed);
    assert_eq!(over.test.standing.value, Flaky);
    assert_eq!(over.decisions[0], Decision::Unmuted { monitor, by: Actor::system() });
    assert!(scenario.absorb(&Fact::TimePassed).empty);
    scenario.mute(MuteLength::Forever).expect("muted");
    assert_eq!(next_deadline(&scenario.test), None);
    scenario.wait(24);
    scenario.runs(1, 0);
    let moved = scenario.measure().decisions;
    let recovered =
        |it: &Decision| matches!(it, Decision::MonitorMoved { cause: MonitorCause::Recovered, .. });
    assert!(moved.iter().any(recovered), "muted monitors resolve as well");
    scenario.ask(&Command::Unmute { monitor, by: by() }).expect("unmuted");
    assert_eq!(scenario.test.standing.value, Healthy);
}

#[test]
fn a_monitor_that_labels_is_a_dry_run() {
    let mut label = monitor(7, Classification::Flaky, count(1, 24, 24));
    label.action = Action::Label { labels: vec!["shaky".into()], remove_when_resolved: true };
    let mut scenario = Scenario::new(vec![label]);
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Healthy);
    let add = Command::AddLabel { label: "shaky".into(), by: by() };
    scenario.ask(&add).expect("added");
    assert_eq!(scenario.test.labels["shaky"].len(), 2);
    scenario.wait(24);
    scenario.runs(1, 0);
    scenario.measure();
    assert!(
        scenario.test.labels["shaky"].iter().eq([&LabelSource::Person]),
        "people hold it still"
    );
    scenario.ask(&Command::RemoveLabel { label: "shaky".into(), by: by() }).expect("removed");
    assert!(scenario.test.labels.is_empty());
}

#[test]
fn an_override_has_its_actor_and_ends_when_it_expires() {
    let mut scenario = Scenario::by_default();
    scenario.settings.quarantine.enabled = true;
    let end = scenario.now.plus(Span::hours(5));
    let always = scenario.set_quarantine(QuarantineOverride::Always, Some(end)).expect("set");
    let [event] = always.events.as_slice() else { panic!("{:?}", always.events) };
    let EventKind::QuarantiningSettingChanged { actor, previous, updated, .. } = &event.kind else {
        panic!("{event:?}")
    };
    assert_eq!(actor, &by());
    let (from, to) = (QuarantineOverride::Follow, QuarantineOverride::Always);
    assert_eq!((*previous, *updated, event.quarantined), (from, to, true));
    assert!(scenario.set_quarantine(to, Some(end)).expect("known").empty);
    let longer = end.plus(Span::hours(1));
    let prolonged = scenario.set_quarantine(to, Some(longer)).expect("set");
    assert_eq!(
        (prolonged.decisions.len(), prolonged.events.len()),
        (1, 0),
        "the setting is the same"
    );
    assert!(!scenario.set_quarantine(to, Some(end)).expect("set").empty);
    assert!(!scenario.test.is_quarantined(&scenario.settings, end), "also before the next step");
    assert_eq!(next_deadline(&scenario.test), Some(end));
    scenario.wait(5);
    let over = scenario.absorb(&Fact::TimePassed);
    assert_eq!(over.events.len(), 1);
    assert!(!over.events[0].quarantined);
    assert_eq!(next_deadline(&scenario.test), None);
}

#[test]
fn only_always_may_expire_and_only_later() {
    let mut scenario = Scenario::by_default();
    let later = Some(scenario.now.plus(Span::hours(1)));
    for setting in [QuarantineOverride::Never, QuarantineOverride::Follow] {
        assert!(scenario.set_quarantine(setting, later).is_err());
    }
    assert!(scenario.set_quarantine(QuarantineOverride::Always, Some(start())).is_err());
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

#[test]
fn a_mute_lasts_as_long_as_its_name_says() {
    for (length, hours) in [
        (MuteLength::Hour, Some(1)),
        (MuteLength::FourHours, Some(4)),
        (MuteLength::Day, Some(24)),
        (MuteLength::Week, Some(168)),
        (MuteLength::Month, Some(720)),
        (MuteLength::Forever, None),
    ] {
        let end = hours.map(|hours| start().plus(Span::hours(hours)));
        assert_eq!(length.end(start()), end, "{}", length.as_str());
    }
}

#[test]
fn a_test_is_quarantined_since_the_last_of_its_causes() {
    let mut scenario = flaky(count(1, 24, 24));
    assert_eq!(scenario.test.quarantined_since(&scenario.settings, scenario.now), None);
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Flaky);
    let flaky_since = scenario.test.standing.since;
    scenario.settings.quarantine.enabled = true;
    scenario.settings.quarantine.auto = AutoQuarantine::Flaky;
    let since =
        |scenario: &Scenario| scenario.test.quarantined_since(&scenario.settings, scenario.now);
    assert_eq!(since(&scenario), Some(flaky_since), "nothing else is known");
    scenario.wait(1);
    scenario.settings.quarantine_since.flaky = Some(scenario.now);
    assert_eq!(since(&scenario), Some(scenario.now), "the settings came last");
    let enabled = scenario.now;
    scenario.wait(1);
    scenario.settings.quarantine_since.enabled = Some(enabled);
    scenario.set_quarantine(QuarantineOverride::Always, None).expect("set");
    assert_eq!(since(&scenario), Some(enabled), "the override changes nothing");
}

#[test]
fn the_cause_of_quarantine_is_what_quarantines() {
    let mut scenario = flaky(count(1, 24, 24));
    scenario.settings.quarantine.enabled = true;
    scenario.settings.quarantine.auto = AutoQuarantine::Flaky;
    let cause = |scenario: &Scenario| {
        let cause = scenario.test.quarantine_cause(&scenario.settings, scenario.now);
        cause.map(|it| it.to_string())
    };
    assert_eq!(cause(&scenario), None, "it is healthy");
    scenario.ask(&Command::Flag { reason: None, by: by() }).expect("flagged");
    assert_eq!(cause(&scenario).as_deref(), Some("flagged as flaky by Ada Lovelace"));
    scenario.ask(&Command::Unflag { reason: None, by: by() }).expect("unflagged");
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Flaky);
    let by_monitor = "flaky by monitor Flaky in the merge queue";
    assert_eq!(cause(&scenario).as_deref(), Some(by_monitor));
    let end = scenario.now.plus(Span::hours(1));
    scenario.set_quarantine(QuarantineOverride::Always, Some(end)).expect("set");
    assert_eq!(cause(&scenario).as_deref(), Some("always quarantined by Ada Lovelace"));
    scenario.now = end;
    assert_eq!(cause(&scenario).as_deref(), Some(by_monitor), "the override has expired");
    scenario.set_quarantine(QuarantineOverride::Never, None).expect("set");
    assert_eq!(cause(&scenario), None);
}

#[test]
fn a_label_of_a_user_has_1_to_100_characters() {
    let add = |length| {
        let mut scenario = Scenario::by_default();
        scenario.measure();
        let label = "é".repeat(length);
        scenario.ask(&Command::AddLabel { label, by: by() }).is_ok()
    };
    assert_eq!([0, 1, 100, 101, 200].map(add), [false, true, true, false, false]);
}

#[test]
fn nothing_unknown_is_quarantined() {
    let mut scenario = flaky(count(1, 24, 24));
    scenario.settings.quarantine.enabled = true;
    scenario.settings.quarantine.auto = AutoQuarantine::Flaky;
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), Flaky);
    let (settings, test, at) = (&scenario.settings, &scenario.test, scenario.now);
    assert!(is_known_quarantined(Some(settings), Some(test), at));
    assert!(!is_known_quarantined(Some(settings), None, at));
    assert!(!is_known_quarantined(None, Some(test), at));
}

#[test]
fn automatic_quarantine_requires_quarantine_to_be_enabled() {
    let settings = Scenario::by_default().settings;
    let patch = |enabled, auto| SettingsPatch {
        quarantine_enabled: Some(enabled),
        auto_quarantine: Some(auto),
        ..SettingsPatch::default()
    };
    let on = patch(true, AutoQuarantine::Flaky).applied_to(&settings).expect("valid");
    assert_eq!(on.quarantine.auto, AutoQuarantine::Flaky);
    let kept = SettingsPatch::default().applied_to(&on).expect("valid");
    assert_eq!(kept.quarantine, on.quarantine, "an empty patch changes nothing");
    let refusal = patch(false, AutoQuarantine::Flaky).applied_to(&settings).expect_err("refused");
    assert!(refusal.to_string().starts_with("autoQuarantine must be off"), "{refusal}");
    let off = patch(false, AutoQuarantine::Off).applied_to(&on).expect("valid");
    assert_eq!(off.quarantine.auto, AutoQuarantine::Off);
}

#[test]
fn a_reason_of_a_user_has_at_most_256_characters() {
    let flag = |length| {
        let reason = Some("é".repeat(length));
        Scenario::by_default().ask(&Command::Flag { reason, by: by() }).is_ok()
    };
    assert_eq!([0, 256, 257].map(flag), [true, true, false]);
}

#[test]
fn only_an_old_override_of_a_test_that_stays_healthy_can_be_released() {
    let days = RELEASE_DAYS * 24;
    let mut scenario = flaky(count(1, 24, 24));
    let can =
        |scenario: &Scenario, failed_at| can_be_released(&scenario.test, failed_at, scenario.now);
    scenario.wait(days);
    assert!(!can(&scenario, None), "nothing keeps it in quarantine");
    scenario.set_quarantine(QuarantineOverride::Always, None).expect("set");
    scenario.wait(days - 1);
    assert!(!can(&scenario, None), "the override is too new");
    let failed_at = Some(scenario.now);
    scenario.wait(1);
    assert!(can(&scenario, None));
    assert!(!can(&scenario, failed_at), "it failed an hour ago");
    let end = scenario.now.plus(Span::hours(days));
    scenario.set_quarantine(QuarantineOverride::Always, Some(end)).expect("set");
    scenario.wait(days);
    assert!(!can(&scenario, None), "the override has expired");

    let mut found = flaky(count(1, 24, 24));
    found.set_quarantine(QuarantineOverride::Always, None).expect("set");
    found.runs(0, 1);
    assert_eq!(found.status(), Flaky);
    found.wait(days);
    assert!(!can(&found, Some(start())), "a monitor still reports it");
    found.runs(1, 0);
    assert_eq!(found.status(), Healthy);
    assert!(!can(&found, Some(start())), "it has just recovered");
    found.wait(days);
    assert!(can(&found, Some(start())));
    found.set_quarantine(QuarantineOverride::Never, None).expect("set");
    found.wait(days);
    assert!(!can(&found, Some(start())), "it is not quarantined");
}
