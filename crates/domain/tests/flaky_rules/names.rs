//! Tests that stable branches no longer contain.

use signalbox_domain::flaky::{
    AutoQuarantine, Classification, Command, Decision, Fact, IgnoredBecause, Inheritance,
    MuteLength, QuarantineOverride, QuarantineSettings, Refusal, Retirement, StatusReason,
    TestCase, TestKey, TestStatus, renames,
};
use signalbox_domain::time::Timestamp;

use crate::scenario::{Scenario, by, count, monitor};

fn retirement(scenario: &Scenario) -> Retirement {
    let at = scenario.now;
    Retirement { at, missing_since: at, commits: 10, code_at: at, renamed_to: None }
}

fn retire(scenario: &mut Scenario) -> crate::scenario::Done {
    let fact = Fact::Retired(retirement(scenario));
    scenario.absorb(&fact)
}

fn bring_back(scenario: &mut Scenario, code_at: Timestamp) -> crate::scenario::Done {
    scenario.absorb(&Fact::Returned { code_at })
}

fn flaky() -> Scenario {
    let mut scenario = Scenario::new(vec![monitor(7, Classification::Flaky, count(1, 24, 24))]);
    scenario.settings.quarantine =
        QuarantineSettings { enabled: true, auto: AutoQuarantine::Flaky };
    scenario.runs(0, 1);
    assert_eq!(scenario.status(), TestStatus::Flaky);
    scenario
}

#[test]
fn a_retired_test_is_healthy_and_not_quarantined() {
    let mut scenario = flaky();
    let done = retire(&mut scenario);
    let names: Vec<&str> = done.events.iter().map(|it| it.kind.name()).collect();
    let changed = ["test_case.status_changed", "v2.test_case.status_changed"];
    assert_eq!(names, [["test_case.retired"].as_slice(), &changed].concat());
    assert_eq!(done.test.standing.value, TestStatus::Healthy);
    assert_eq!(done.test.standing.reason, StatusReason::Retired);
    assert!(!done.test.is_quarantined(&scenario.settings, scenario.now));
    assert!(done.test.is_remarkable(), "what was found is kept");
}

#[test]
fn a_test_that_returns_is_what_it_was() {
    let mut scenario = flaky();
    scenario.set_quarantine(QuarantineOverride::Always, None).expect("decided");
    scenario.mute(MuteLength::Forever).expect("muted");
    scenario.ask(&Command::Flag { reason: None, by: by() }).expect("flagged");
    let before = scenario.test.clone();
    retire(&mut scenario);
    scenario.wait(1);
    let code_at = scenario.now;
    let done = bring_back(&mut scenario, code_at);
    assert_eq!(done.test.standing.value, TestStatus::Flaky);
    assert_eq!(done.test.standing.reason, StatusReason::FlaggedByHand);
    assert_eq!(
        (&done.test.flag, &done.test.quarantine, &done.test.monitors),
        (&before.flag, &before.quarantine, &before.monitors)
    );
    assert!(done.test.is_quarantined(&scenario.settings, scenario.now));
}

#[test]
fn a_healthy_test_that_returns_is_healthy_again() {
    let mut scenario = Scenario::by_default();
    scenario.set_quarantine(QuarantineOverride::Never, None).expect("decided");
    retire(&mut scenario);
    assert_eq!(scenario.test.standing.reason, StatusReason::Retired);
    scenario.wait(1);
    let code_at = scenario.now;
    let done = bring_back(&mut scenario, code_at);
    assert_eq!(done.test.standing.reason, StatusReason::NothingFound);
}

#[test]
fn a_test_retires_and_returns_once_and_not_by_an_older_commit() {
    let mut scenario = flaky();
    let now = scenario.now;
    assert!(bring_back(&mut scenario, now).empty, "it is not retired");
    retire(&mut scenario);
    assert!(retire(&mut scenario).empty);
    let done = bring_back(&mut scenario, now);
    assert_eq!(done.decisions, [Decision::Ignored { because: IgnoredBecause::Superseded }]);
}

#[test]
fn a_monitor_keeps_watching_a_retired_test() {
    let mut scenario = flaky();
    retire(&mut scenario);
    scenario.wait(23);
    scenario.runs(1, 0);
    scenario.wait(2);
    assert_eq!(scenario.status(), TestStatus::Healthy);
    assert_eq!(scenario.test.standing.reason, StatusReason::Retired);
    let code_at = scenario.now;
    assert_eq!(bring_back(&mut scenario, code_at).test.standing.value, TestStatus::Healthy);
}

fn key(file: &str, class: &str, name: &str) -> TestKey {
    let (file, classname, name) = (file.into(), class.into(), name.into());
    TestKey { file, classname, name, ..TestKey::default() }
}

fn paired(old: &[TestKey], new: &[TestKey]) -> Vec<(usize, usize)> {
    let (old, new): (Vec<&TestKey>, Vec<&TestKey>) = (old.iter().collect(), new.iter().collect());
    renames(&old, &new, |_, _| true)
}

#[test]
fn similar_names_in_one_place_and_equal_names_in_two_are_renames() {
    let old = key("a.rs", "Sums", "adds two numbers");
    for (new, is_pair) in [
        (key("a.rs", "Sums", "adds three numbers"), true),
        (key("a.rs", "Totals", "adds two numbers"), true),
        (key("b.rs", "Totals", "adds two numbers"), true),
        (key("a.rs", "Totals", "adds three numbers"), false),
        (key("b.rs", "Sums", "adds three numbers"), false),
        (key("a.rs", "Sums", "parses a header"), false),
        (key("a.rs", "Sums", ""), false),
        (TestKey { variant: "linux".into(), ..key("b.rs", "Sums", "adds two numbers") }, false),
    ] {
        let pairs = paired(std::slice::from_ref(&old), std::slice::from_ref(&new));
        assert_eq!(!pairs.is_empty(), is_pair, "{new:?}");
    }
}

#[test]
fn names_are_paired_one_to_one_and_only_when_no_other_pair_is_as_good() {
    let of = |names: &[&str]| names.iter().map(|name| key("a.rs", "", name)).collect::<Vec<_>>();
    let old = of(&["parses a header", "adds two numbers"]);
    assert_eq!(paired(&old, &of(&["adds 2 numbers", "parses headers"])), [(0, 1), (1, 0)]);
    assert_eq!(paired(&of(&["adds a"]), &of(&["adds b", "adds c"])), []);
    assert_eq!(paired(&of(&["adds b", "adds c"]), &of(&["adds a"])), []);
    let many: Vec<String> = (0..300).map(|number| format!("{number} is new")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(paired(&of(&["adds a"]), &of(&many)), []);
}

fn inheritance(of: &Scenario, to: &Scenario) -> Fact {
    let mut inheritance = Inheritance::of(&of.test, &to.test);
    inheritance.from = key("old.rs", "", "old").id();
    Fact::Inherited(inheritance)
}

#[test]
fn a_successor_takes_over_what_was_found_and_decided() {
    let mut old = flaky();
    old.set_quarantine(QuarantineOverride::Always, None).expect("decided");
    old.mute(MuteLength::Day).expect("muted");
    old.ask(&Command::Flag { reason: None, by: by() }).expect("flagged");
    old.ask(&Command::AddLabel { label: "slow".into(), by: by() }).expect("labelled");
    let mut new = Scenario { settings: old.settings.clone(), now: old.now, ..flaky() };
    new.test = TestCase::new(new.test.org, new.test.repo, new.test.key.clone(), old.now);
    let fact = inheritance(&old, &new);
    let done = new.absorb(&fact);
    let test = &done.test;
    assert_eq!(
        (&test.flag, &test.quarantine, &test.monitors, &test.labels),
        (&old.test.flag, &old.test.quarantine, &old.test.monitors, &old.test.labels)
    );
    assert_eq!(test.standing.value, TestStatus::Flaky);
    let names: Vec<&str> = done.events.iter().map(|it| it.kind.name()).collect();
    assert_eq!(names.first(), Some(&"test_case.renamed"));
    assert!(names.contains(&"test_case.quarantining_setting_changed"));
    assert!(new.absorb(&fact).empty, "once");
}

#[test]
fn what_was_decided_about_the_new_name_later_holds() {
    let mut old = flaky();
    old.set_quarantine(QuarantineOverride::Always, None).expect("decided");
    let mut new = Scenario { settings: old.settings.clone(), now: old.now, ..flaky() };
    new.wait(1);
    new.set_quarantine(QuarantineOverride::Never, None).expect("decided");
    let done = new.absorb(&inheritance(&old, &new));
    assert_eq!(done.test.quarantining().setting, QuarantineOverride::Never);
}

#[test]
fn an_override_or_mute_that_is_over_is_not_taken_over() {
    let mut old = flaky();
    let end = old.now.plus(signalbox_domain::time::Span::hours(1));
    old.set_quarantine(QuarantineOverride::Always, Some(end)).expect("decided");
    old.mute(MuteLength::Hour).expect("muted");
    let mut new =
        Scenario { settings: old.settings.clone(), now: old.now, ..Scenario::by_default() };
    new.wait(2);
    let done = new.absorb(&inheritance(&old, &new));
    assert_eq!(done.test.quarantining().setting, QuarantineOverride::Follow);
    assert!(done.test.monitors.values().all(|record| record.mute.is_none()));
    assert_eq!(done.test.standing.value, TestStatus::Flaky);
}

#[test]
fn decisions_about_an_old_name_are_refused() {
    let mut scenario = flaky();
    let to = key("a.rs", "", "new").id();
    let retirement = Retirement { renamed_to: Some(to), ..retirement(&scenario) };
    scenario.absorb(&Fact::Retired(retirement));
    let refused = scenario.ask(&Command::Flag { reason: None, by: by() });
    assert_eq!(refused, Err(Refusal::Renamed { to }));
}
