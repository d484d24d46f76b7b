//! What is counted of tests day by day, and what they delayed.

use signalbox_domain::flaky::{AutoQuarantine, BranchClass, SettingsPatch, delayed};
use signalbox_domain::ports::{DayCounts, Stores, TestSnapshot};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::ResultsSink;

use super::flaky_scenario::Scenario;

/// Flaky, broken and quarantined tests of the last days, each with its day.
async fn trend(scenario: &Scenario<'_>, days: u32) -> Vec<(i64, [u64; 3])> {
    let found = scenario.service.trend(&scenario.caller, scenario.name(), days).await;
    let start = Timestamp::from_unix_seconds(0);
    let day = |at: Timestamp| at.since(start).micros() / Span::days(1).micros();
    let row = |it: &DayCounts| (day(it.day), [it.flaky, it.broken, it.quarantined]);
    found.expect("a trend").iter().map(row).collect()
}

/// A repository is counted once a day and after each change; the last counts of a day stay.
pub async fn tests_are_counted_day_by_day(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let other = Scenario::new(stores, "rival").await;
    let count = async || scenario.service.count_tests().await.expect("counted");
    assert_eq!(count().await, 0, "nothing was uploaded yet");
    other.report(1, vec![other.run("adds", true)]).await;
    assert_eq!(count().await, 1);
    let quarantine = |auto| SettingsPatch {
        quarantine_enabled: Some(auto != AutoQuarantine::Off),
        auto_quarantine: Some(auto),
        ..SettingsPatch::default()
    };
    scenario.set(quarantine(AutoQuarantine::Flaky)).await;
    let (first, [_, _, none]) = trend(&scenario, 7).await[0];
    assert_eq!(none, 0);
    scenario.make_flaky("one", 1).await;
    assert_eq!(count().await, 1);
    assert_eq!(count().await, 0, "nothing has changed since");
    scenario.make_flaky("two", 2).await;
    let today = [(first, [2, 0, 2])];
    assert_eq!(trend(&scenario, 7).await, today, "the last day is today, whatever was counted");
    assert_eq!((count().await, count().await), (1, 0));
    scenario.wait(24);
    assert_eq!(count().await, 2, "once a day, also without a change");
    scenario.set(quarantine(AutoQuarantine::Off)).await;
    assert_eq!(count().await, 1);
    scenario.wait(2 * 24);
    let days = [(first, [2, 0, 2]), (first + 1, [2, 0, 0]), (first + 3, [2, 0, 0])];
    assert_eq!(trend(&scenario, 7).await, days, "a day without a count is missing");
    assert_eq!(trend(&scenario, 3).await, days[1..]);
    scenario.wait(44 * 24);
    while scenario.service.prune(Span::days(45)).await.expect("pruned") > 0 {}
    let left = stores.flaky.trend.days(scenario.repo, Timestamp::from_unix_seconds(0)).await;
    assert_eq!(left.expect("days").len(), 0, "counts are kept as long as results");
    let of_other = stores.flaky.trend.days(other.repo, Timestamp::from_unix_seconds(0)).await;
    assert_eq!(of_other.expect("days").len(), 0);
}

/// A pull request waits from a failure until the same job passes on the same commit.
pub async fn what_a_test_delayed_is_counted(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let report = async |pr: u32, commit: u32, passed: bool, later: u32| {
        scenario.report_pr(commit, pr, vec![scenario.run("adds", passed)]).await;
        scenario.clock.advance(Span::minutes(later));
    };
    report(11, 1, false, 20).await;
    report(11, 1, true, 5).await;
    report(12, 2, false, 10).await;
    report(12, 3, true, 5).await;
    report(13, 4, false, 7).await;
    report(13, 4, true, 5).await;
    let service = &scenario.service;
    let minutes = async || {
        let test = service.test(&scenario.caller, scenario.name(), scenario.key("adds").id()).await;
        let tests: [TestSnapshot; 1] = [test.expect("a test")];
        let found = service.delays(&scenario.caller, scenario.name(), &tests).await;
        let found = found.expect("delays");
        delayed(found.values().flatten()).micros() / Span::minutes(1).micros()
    };
    assert_eq!(minutes().await, 20 + 7, "what another commit fixed is no delay");
    // A candidate of several pull requests names none of them.
    for passed in [false, true] {
        let mut upload = scenario.upload(5);
        (upload.branch, upload.class) = ("queue/main".into(), BranchClass::Merge);
        service.take_in(&upload, vec![scenario.run("adds", passed)]).await.expect("stored");
        scenario.clock.advance(Span::minutes(3));
    }
    assert_eq!(minutes().await, 20 + 7 + 3);
    scenario.wait(8 * 24);
    assert_eq!(minutes().await, 0);
}
