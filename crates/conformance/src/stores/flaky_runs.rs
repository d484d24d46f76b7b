//! Lookups of failing checks and test runs.

use signalbox_domain::flaky::{AutoQuarantine, Excuse, FailedCheck, SettingsPatch};
use signalbox_domain::ports::{RepoRef, Stores};
use signalbox_domain::time::Span;
use signalbox_services::QuarantineLookup;

use super::Sample;
use super::flaky_scenario::Scenario;

/// A failing check is excused by what is quarantined, and by nothing else.
pub async fn a_check_is_excused_by_quarantined_tests_only(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.make_flaky("flaky", 1).await;
    scenario.report(2, vec![scenario.run("sound", false)]).await;
    let ask = async |names: &[&str]| {
        let failing: Vec<_> = names.iter().map(|name| scenario.asked(name)).collect();
        let check = FailedCheck { failing: &failing, complete: true };
        scenario.service.excuse(scenario.repo.org, scenario.repo.id, check).await
    };
    let failing = |names: &[&str]| Excuse::Failing(names.iter().map(ToString::to_string).collect());
    assert_eq!(ask(&["flaky"]).await, failing(&["flaky"]), "quarantine is not enabled");
    scenario
        .set(SettingsPatch {
            quarantine_enabled: Some(true),
            auto_quarantine: Some(AutoQuarantine::Flaky),
            ..SettingsPatch::default()
        })
        .await;
    let Excuse::Excused(excused) = ask(&["flaky"]).await else { panic!("not excused") };
    let words: Vec<String> =
        excused.iter().map(|it| format!("{}: {}", it.name, it.cause)).collect();
    assert_eq!(words, ["flaky: flaky by monitor Pass on retry"]);
    assert_eq!(ask(&["flaky", "sound"]).await, failing(&["sound"]));
    assert_eq!(ask(&["unknown"]).await, failing(&["unknown"]));
    assert_eq!(ask(&[]).await, Excuse::Unexplained, "an empty request does not mean all tests");
    let asked = [scenario.asked("flaky")];
    let cut_off = FailedCheck { failing: &asked, complete: false };
    let answer = scenario.service.excuse(scenario.repo.org, scenario.repo.id, cut_off).await;
    assert_eq!(answer, Excuse::Unexplained);
    let other = Sample::repository(stores, scenario.repo.org, "other").await;
    let whole = FailedCheck { failing: &asked, complete: true };
    let elsewhere = scenario.service.excuse(scenario.repo.org, other.id, whole).await;
    assert_eq!(elsewhere, failing(&["flaky"]), "what one repository excuses another does not");
    scenario
        .set(SettingsPatch { quarantine_enabled: Some(false), ..SettingsPatch::default() })
        .await;
    assert_eq!(ask(&["flaky"]).await, failing(&["flaky"]), "switched off");
}

/// The failing runs of a commit are found by the commit and the time, the newest first.
pub async fn failed_runs_are_found_by_commit_and_time(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let start = scenario.now();
    scenario.report(1, vec![scenario.run("a", false), scenario.run("b", true)]).await;
    scenario.clock.advance(Span::minutes(10));
    scenario.report(1, vec![scenario.run("c", false)]).await;
    scenario.report(2, vec![scenario.run("d", false)]).await;
    let sha = scenario.upload(1).sha.expect("a commit");
    let end = scenario.now().plus(Span::minutes(1));
    let found = async |repo: RepoRef, range, limit| {
        let runs = stores.flaky.reads.failed_runs(repo, &sha, range, limit).await.expect("runs");
        runs.into_iter().map(|run| run.test).collect::<Vec<_>>()
    };
    let (a, c) = (scenario.key("a").id(), scenario.key("c").id());
    assert_eq!(found(scenario.repo, (start, end), 10).await, [c, a]);
    assert_eq!(found(scenario.repo, (start, end), 1).await, [c]);
    assert_eq!(
        found(scenario.repo, (start, scenario.now()), 10).await,
        [a],
        "the end does not belong to it"
    );
    assert_eq!(found(scenario.repo, (start.plus(Span::seconds(1)), end), 10).await, [c]);
    let other = Sample::org(stores, "other").await;
    let foreign = RepoRef { org: other.id, id: scenario.repo.id };
    assert_eq!(found(foreign, (start, end), 10).await, []);
}
