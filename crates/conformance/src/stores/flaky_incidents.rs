//! Incidents: kept, read, and recounted the same on every store.

use signalbox_domain::flaky::{
    IncidentCause, IncidentState, ReportedFailure, ReportedRun, StatusReason, Summary, TestId,
    TestStatus,
};
use signalbox_domain::ports::{Stores, TestList};
use signalbox_domain::time::{Span, Timestamp};

use super::flaky_lists::ids;
use super::flaky_scenario::Scenario;

/// Tests of the repository.
const TESTS: u32 = 24;

fn name(test: u32) -> String {
    format!("test {test}")
}

/// Runs of all tests; those of a range fail.
fn runs(scenario: &Scenario<'_>, failing: std::ops::Range<u32>) -> Vec<ReportedRun> {
    (0..TESTS).map(|test| scenario.run(&name(test), !failing.contains(&test))).collect()
}

/// A repository whose tests have passed before.
async fn known<'a>(stores: &'a Stores, org: &str) -> Scenario<'a> {
    let scenario = Scenario::new(stores, org).await;
    for commit in 100..112 {
        scenario.report(commit, runs(&scenario, 0..0)).await;
        scenario.wait(1);
    }
    scenario
}

async fn failures_7d(scenario: &Scenario<'_>, test: TestId) -> u32 {
    let later = scenario.now().plus(Span::hours(1));
    let numbers = scenario.stores.flaky.reads.numbers(scenario.repo, &[test], later).await;
    numbers.expect("a read").get(&test).map_or(0, |it| it.failures_7d)
}

async fn flaky(scenario: &Scenario<'_>) -> usize {
    ids(scenario.stores, scenario.repo, TestList::Unhealthy(TestStatus::Flaky)).await.len()
}

/// Half of all tests fail in one upload and pass again: an incident, which belongs to its repository.
pub async fn a_bad_upload_is_an_incident(stores: &Stores) {
    let scenario = known(stores, "acme").await;
    scenario.report(7, runs(&scenario, 0..12)).await;
    let long_ago = Timestamp::from_unix_seconds(0);
    let tests = &stores.flaky.tests;
    let found = tests.incidents(scenario.repo, long_ago, 10).await.expect("a read").incidents;
    assert_eq!(found.len(), 1);
    let id = found[0].id;
    assert_eq!((found[0].state, found[0].failures), (IncidentState::Suspected, 12));
    scenario.clock.advance(Span::minutes(5));
    scenario.report(7, runs(&scenario, 0..0)).await;
    let known = tests.incidents(scenario.repo, long_ago, 10).await.expect("a read");
    let incident = tests.incident(scenario.repo, id).await.expect("a read").expect("kept");
    assert_eq!(known.incidents, std::slice::from_ref(&incident));
    assert_eq!(incident.state, IncidentState::Recovered);
    assert_eq!(incident.cause, IncidentCause::FailureJump);
    assert_eq!(flaky(&scenario).await, 0, "nothing of it counts");
    let failures = tests.incident_failures(scenario.repo, id).await.expect("a read");
    assert_eq!(failures.len(), 12);
    let failing = tests.failing_runs(scenario.repo, &failures, long_ago).await.expect("a read");
    assert_eq!(failing.len(), 12);
    let (hit, other) = (scenario.key(&name(0)).id(), scenario.key(&name(20)).id());
    let of_test = |test| stores.flaky.reads.incidents_of(scenario.repo, test, 5);
    assert_eq!(of_test(hit).await.expect("a read"), [incident]);
    assert!(of_test(other).await.expect("a read").is_empty());
    let foreign = Scenario::new(stores, "globex").await.repo;
    assert!(tests.incidents(foreign, long_ago, 10).await.expect("a read").incidents.is_empty());
    assert!(tests.incident(foreign, id).await.expect("a read").is_none());
    assert!(tests.incident_failures(foreign, id).await.expect("a read").is_empty());
    let later = scenario.now().plus(Span::days(2));
    while tests.prune(later, 1_000).await.expect("pruned") > 0 {}
    assert!(tests.incident(scenario.repo, id).await.expect("a read").is_none(), "old ones go");
    assert!(tests.incident_failures(scenario.repo, id).await.expect("a read").is_empty());
}

/// The failures of a dismissed incident count everywhere, and nowhere once it is confirmed.
pub async fn failures_are_recounted(stores: &Stores) {
    let scenario = known(stores, "acme").await;
    scenario.report(7, runs(&scenario, 0..12)).await;
    scenario.clock.advance(Span::minutes(5));
    scenario.report(7, runs(&scenario, 0..0)).await;
    let (caller, name) = (&scenario.caller, scenario.name());
    let id = scenario.service.incidents(caller, name).await.expect("incidents")[0].id;
    let test = scenario.key("test 3").id();
    let long_ago = Timestamp::from_unix_seconds(0);
    let summary = async || {
        let found = stores.flaky.tests.summaries(scenario.repo, &[test], long_ago).await;
        found.expect("a read").remove(&test).unwrap_or_default()
    };
    let failed = |summary: &Summary| summary.buckets.iter().map(|it| it.failed).sum::<u32>();
    let on_codes =
        |summary: &Summary| summary.codes.iter().filter(|it| it.first_failure_at.is_some()).count();
    for (confirm, counted) in [(false, 1), (true, 0), (false, 1)] {
        scenario.clock.advance(Span::minutes(1));
        let decided = scenario.service.decide_incident(caller, name, id, confirm, None).await;
        assert_eq!(decided.expect("decided").state.excludes(), confirm);
        let known = summary().await;
        assert_eq!(failed(&known), counted);
        assert_eq!(on_codes(&known), usize::try_from(counted).expect("small"));
        assert_eq!(failures_7d(&scenario, test).await, counted);
        let record = scenario.test("test 3").await;
        assert_eq!(record.last_failure_at.is_some(), !confirm);
        assert_eq!(record.windows.last_failure_at().is_some(), !confirm);
        assert_eq!(flaky(&scenario).await, if confirm { 0 } else { 12 });
    }
    let record = scenario.test("test 3").await;
    assert_eq!(record.test.standing.reason, StatusReason::PassOnRetry);
}

/// Small uploads that are an incident together: what the first ones have flagged is undone.
pub async fn an_incident_is_recognized_late(stores: &Stores) {
    let scenario = known(stores, "acme").await;
    let mut flagged = 0;
    for group in 0..6_u32 {
        let tests = group * 4..group * 4 + 4;
        let runs = tests.flat_map(|test| {
            // The failures have nothing in common: numbers are masked, letters are not.
            let own = char::from_u32(u32::from('a') + test).expect("a letter");
            let message = format!("lost row {}", own.to_string().repeat(3));
            let failure = Some(ReportedFailure { message, text: String::new() });
            let again = ReportedRun { attempt: 1, ..scenario.run(&name(test), true) };
            [ReportedRun { failure, ..scenario.run(&name(test), false) }, again]
        });
        scenario.report(10 + group, runs.collect()).await;
        flagged = flagged.max(flaky(&scenario).await);
        scenario.clock.advance(Span::minutes(8));
    }
    assert!(flagged >= 12, "{flagged} tests were flagged");
    assert_eq!(flaky(&scenario).await, 0, "all of that is undone");
    let record = scenario.test("test 0").await;
    assert_eq!(record.test.standing.reason, StatusReason::Incident);
    assert_eq!(failures_7d(&scenario, record.test.id).await, 0);
    let incidents = scenario.service.incidents(&scenario.caller, scenario.name()).await;
    let incidents = incidents.expect("incidents");
    assert_eq!((incidents.len(), incidents[0].failures), (1, TESTS));
}
