//! What a repository decides.

use signalbox_domain::flaky::TestStatus::{Flaky, Healthy};
use signalbox_domain::flaky::{
    Admission, AutoQuarantine, BranchClass, BranchPattern, BranchScope, Classification, Fact,
    InfrastructureGuard, Monitor, MonitorId, PassOnRetry, Rule, Settings, SettingsPatch,
    StatusReason, Summary, Template, Trust, UploadCounts, admit,
};
use signalbox_domain::ids::RepoId;
use signalbox_domain::time::Span;
use uuid::Uuid;

use crate::scenario::{Scenario, count, flaky, monitor, rate, start};

#[test]
fn a_disabled_or_deleted_monitor_resolves_immediately() {
    for delete in [false, true] {
        let mut scenario = flaky(count(1, 24, 24));
        scenario.runs(0, 1);
        assert_eq!(scenario.status(), Flaky);
        let old = scenario.settings.monitors[0].clone();
        scenario.settings = if delete {
            scenario.settings.without_monitor(old.id).expect("there is one")
        } else {
            let disabled = Monitor { enabled: false, ..old };
            scenario.settings.with_monitor(disabled, scenario.now).expect("valid")
        };
        let done = scenario.absorb(&Fact::SettingsChanged);
        assert_eq!(done.test.standing.value, Healthy);
        assert_eq!(done.test.standing.reason, StatusReason::MonitorChanged);
        assert!(scenario.absorb(&Fact::SettingsChanged).empty);
    }
}

#[test]
fn a_changed_monitor_replaces_the_one_with_its_id() {
    let monitors = [1, 2].map(|id| monitor(id, Classification::Flaky, count(1, 24, 24)));
    let settings = Settings { monitors: monitors.to_vec(), ..Settings::new(RepoId(Uuid::nil())) };
    let renamed = Monitor { name: "Second".into(), ..monitors[1].clone() };
    let changed = settings.with_monitor(renamed.clone(), start()).expect("valid");
    assert_eq!(changed.monitors, [monitors[0].clone(), renamed]);
    assert_eq!(changed.monitors[1].scope_since, None, "its scope is the same");
    let narrow = Monitor { scope: BranchScope::class(BranchClass::Stable), ..monitors[0].clone() };
    let changed = changed.with_monitor(narrow, start()).expect("valid");
    assert_eq!(changed.monitors[0].scope_since, Some(start()));
    let later = start().plus(Span::hours(1));
    let again = changed.with_monitor(changed.monitors[0].clone(), later).expect("valid");
    assert_eq!(again.monitors[0].scope_since, Some(start()), "its scope changed before");
}

#[test]
fn an_upload_in_which_nearly_everything_fails_feeds_nothing() {
    let guard = InfrastructureGuard::default();
    let upload = |tests, failed, trust| admit(guard, false, UploadCounts { tests, failed, trust });
    assert_eq!(upload(20, 17, Trust::Token), Admission::Infrastructure);
    assert_eq!(upload(20, 16, Trust::Token), Admission::Counts, "80 % is not more than 80 %");
    assert_eq!(upload(19, 19, Trust::Token), Admission::Counts, "too few tests to tell");
    assert_eq!(upload(1, 0, Trust::Public), Admission::Untrusted);
    let off = InfrastructureGuard { enabled: false, ..guard };
    let all = UploadCounts { tests: 50, failed: 50, trust: Trust::Public };
    assert_eq!(admit(off, true, all), Admission::Counts);
}

#[test]
fn switching_quarantine_off_forgets_what_was_automatic() {
    let settings = Settings::new(RepoId(Uuid::from_u128(2)));
    let patch = |quarantine_enabled, auto_quarantine| SettingsPatch {
        quarantine_enabled,
        auto_quarantine,
        ..SettingsPatch::default()
    };
    let auto = AutoQuarantine::from_switch(true);
    let refused = patch(None, Some(auto)).applied_to(&settings).expect_err("quarantine is off");
    assert_eq!(refused.to_string(), "autoQuarantine must be off while quarantineEnabled is false");
    let on = patch(Some(true), Some(auto)).applied_to(&settings).expect("valid");
    assert_eq!(on.quarantine.auto, AutoQuarantine::FlakyAndBroken);
    let off = patch(Some(false), None).applied_to(&on).expect("valid");
    let again = patch(Some(true), None).applied_to(&off).expect("valid");
    assert_eq!(again.quarantine.auto, AutoQuarantine::Off);
}

#[test]
fn parameters_of_monitors_have_bounds() {
    let days = |recovery_days| Rule::PassOnRetry(PassOnRetry { recovery_days });
    let over = |rule| monitor(7, Classification::Flaky, rule).check().expect_err("out of bounds");
    for (refused, text) in [
        (over(days(0)), "recoveryDays must be a whole number from 1 to 15"),
        (over(days(16)), "recoveryDays must be a whole number from 1 to 15"),
        (over(rate(0, 0)), "activationThreshold must be a whole number from 1 to 100"),
        (over(rate(30, 31)), "resolutionThreshold must be a whole number from 1 to 30"),
        (over(count(0, 1, 1)), "failureCount must be a whole number from 1 to 10000"),
        (over(count(1, 24, 23)), "resolutionTimeoutHours must be a whole number from 24 to 1080"),
    ] {
        assert_eq!(refused.to_string(), text);
    }
    let broken = monitor(7, Classification::Broken, days(7)).check().expect_err("flaky only");
    assert_eq!(broken.to_string(), "classification of pass_on_retry must be flaky");
    let mut wide = monitor(7, Classification::Flaky, days(7));
    wide.scope.patterns = vec![BranchPattern::any(); 11];
    assert_eq!(
        wide.check().expect_err("too many").to_string(),
        "branchScope must have 1 to 10 patterns"
    );
    for template in Template::ALL {
        assert_eq!(template.monitor(MonitorId(Uuid::nil())).check(), Ok(()));
    }
    let settings = Settings::new(RepoId(Uuid::from_u128(2)));
    let other_kind =
        Monitor { id: settings.monitors[0].id, ..monitor(7, Classification::Flaky, rate(9, 9)) };
    assert!(settings.with_monitor(other_kind, start()).is_err());
}

#[test]
fn the_guard_and_the_branches_have_bounds() {
    let settings = Settings::new(RepoId(Uuid::from_u128(2)));
    let guard = |guard| SettingsPatch { guard: Some(guard), ..SettingsPatch::default() };
    let refused = |patch: SettingsPatch| patch.applied_to(&settings).expect_err("bad").to_string();
    let all = InfrastructureGuard { failed_percent: 100, ..InfrastructureGuard::default() };
    assert_eq!(
        refused(guard(all)),
        "infrastructureFailedPercent must be a whole number from 1 to 99"
    );
    let one = InfrastructureGuard { same_failure_tests: Some(1), ..InfrastructureGuard::default() };
    assert_eq!(
        refused(guard(one)),
        "infrastructureSameFailureTests must be a whole number from 2 to 100000"
    );
    let none = SettingsPatch { stable_branches: Some(vec![]), ..SettingsPatch::default() };
    assert_eq!(refused(none), "stableBranches must have 1 to 10 patterns");
}

#[test]
fn a_preview_shows_what_a_monitor_would_find_and_decides_nothing() {
    let mut scenario = Scenario::new(vec![]);
    scenario.runs(3, 2);
    let summary = Summary::of(&scenario.runs);
    let would = |count_of| monitor(7, Classification::Flaky, count(count_of, 24, 24));
    let seen = would(2).preview(&summary, scenario.now).expect("it would be active");
    assert_eq!(seen.to_string(), "2 runs failed");
    assert_eq!(would(3).preview(&summary, scenario.now), None);
}

#[test]
fn the_name_of_a_monitor_has_1_to_100_characters() {
    let checked = |length| {
        let mut monitor = Template::BrokenOnStable.monitor(MonitorId(Uuid::nil()));
        monitor.name = "é".repeat(length);
        monitor.check().is_ok()
    };
    assert_eq!([0, 1, 100, 101].map(checked), [false, true, true, false]);
}
