//! Imports: results of the past are judged as of their own times, and send no events.

use signalbox_domain::flaky::{
    IMPORT_FINISHED, Imported, Progress, ReportedRun, StatusReason, TestStatus, Upload,
    UploadSource,
};
use signalbox_domain::ports::{Stores, TestList};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::ResultsSink;

use super::flaky_lists::ids;
use super::flaky_scenario::Scenario;

/// A run of a commit that ended so many days ago.
fn past(scenario: &Scenario<'_>, commit: u32, days: u32) -> Upload {
    let mut upload = scenario.upload(commit);
    upload.source = UploadSource::Import;
    upload.received_at = scenario.now().minus(Span::days(days));
    upload
}

async fn import(scenario: &Scenario<'_>, commit: u32, days: u32, runs: Vec<ReportedRun>) -> Upload {
    let upload = past(scenario, commit, days);
    scenario.service.take_in(&upload, runs).await.expect("stored");
    upload
}

async fn events(scenario: &Scenario<'_>) -> Vec<(String, String)> {
    let log = &scenario.stores.webhook.event_log;
    let events = log.after(scenario.repo.org, 0, None, 100).await.expect("events");
    events.into_iter().map(|event| (event.kind, event.payload)).collect()
}

async fn progress(scenario: &Scenario<'_>) -> Progress {
    scenario.stores.flaky.tests.repo(scenario.repo).await.expect("a read").progress
}

/// A test that was flaky 30 days ago and recovered is found, with the times of then, and only the
/// end of the import sends an event.
pub async fn an_imported_run_is_judged_as_of_its_own_time(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let now = scenario.now();
    let (fails, passes) = (|| scenario.run("adds", false), || scenario.run("adds", true));
    import(&scenario, 1, 30, vec![fails()]).await;
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Healthy);
    import(&scenario, 1, 29, vec![passes()]).await;
    let record = scenario.test("adds").await;
    assert_eq!(record.test.standing.value, TestStatus::Flaky);
    assert_eq!(record.test.standing.reason, StatusReason::PassOnRetry);
    assert_eq!(record.test.standing.since, now.minus(Span::days(29)), "its own time");
    assert_eq!(record.first_seen_at, now.minus(Span::days(30)));
    // Monitors of tests are measured by the clock: what is due is not overdue by weeks.
    assert!(stores.flaky.tests.due(now, 10).await.expect("a read").is_empty());
    import(&scenario, 2, 20, vec![passes()]).await;
    let record = scenario.test("adds").await;
    assert_eq!(record.test.standing.value, TestStatus::Healthy, "recovered 9 days later");
    assert_eq!(record.test.standing.since, now.minus(Span::days(20)));
    let journal = stores.flaky.reads.test_journal(scenario.repo, record.test.id, None, 10).await;
    let times: Vec<Timestamp> = journal.expect("a journal").iter().map(|it| it.at).collect();
    assert_eq!(times, [20, 29].map(|days| now.minus(Span::days(days))));
    import(&scenario, 3, 1, vec![fails(), passes()]).await;
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Flaky);
    assert_eq!(events(&scenario).await, [], "the past sends no event");

    let yesterday = now.minus(Span::days(1));
    let (from, until) = (now.minus(Span::days(30)), yesterday);
    let imported = Some(Imported { uploads: 4, runs: 5, from, until });
    assert_eq!(progress(&scenario).await, Progress { judged_at: Some(yesterday), imported });
    let (caller, name) = (&scenario.caller, scenario.name());
    let summary = scenario.service.finish_import(caller, name).await.expect("finished");
    assert_eq!((summary.imported, summary.flaky, summary.broken), (imported, 1, 0));
    let told = format!("{IMPORT_FINISHED} of {name}: 4 uploads, 1 flaky, 0 broken");
    assert_eq!(events(&scenario).await, [(IMPORT_FINISHED.to_owned(), told)]);
    let again = scenario.service.finish_import(caller, name).await.expect("finished");
    assert_eq!((again.imported, again.flaky), (None, 1));
    assert_eq!(events(&scenario).await.len(), 1, "nothing was imported since");
    // From now on every change is an event again.
    scenario.report(4, vec![scenario.run("other", false)]).await;
    scenario.report(4, vec![scenario.run("other", true)]).await;
    assert_eq!(events(&scenario).await.len(), 4);
    assert_eq!(progress(&scenario).await, Progress { judged_at: Some(now), imported: None });
}

/// Runs that are older than what was judged are counted at their times, and judged as of the latest:
/// a disagreement of the past does not make a test flaky today.
pub async fn time_runs_forwards_during_an_import(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let (fails, passes) = (|| scenario.run("adds", false), || scenario.run("adds", true));
    scenario.report(9, vec![passes()]).await;
    import(&scenario, 1, 40, vec![fails(), passes()]).await;
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Healthy);
    let id = scenario.key("adds").id();
    let old = scenario.now().minus(Span::days(41));
    let kept = stores.flaky.tests.summaries(scenario.repo, &[id], old).await.expect("a read");
    let mut starts: Vec<Timestamp> = kept[&id].buckets.iter().map(|it| it.start).collect();
    starts.sort();
    assert_eq!(starts.len(), 2, "{starts:?}");
    assert!(starts[0] < scenario.now().minus(Span::days(39)), "counted at its time");
    // A disagreement of yesterday does, also when it is imported late.
    import(&scenario, 2, 1, vec![fails(), passes()]).await;
    let test = scenario.test("adds").await.test;
    assert_eq!(test.standing.value, TestStatus::Flaky);
    assert_eq!(test.standing.since, scenario.now(), "as of what was judged");
    assert_eq!(events(&scenario).await, []);
}

/// The same run again changes nothing.
pub async fn a_run_is_imported_once(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let runs = || vec![scenario.run("adds", false), scenario.run("adds", true)];
    let upload = import(&scenario, 1, 30, runs()).await;
    let before = (scenario.test("adds").await, progress(&scenario).await);
    let again = scenario.service.take_in(&upload, runs()).await.expect("stored");
    assert!(again.repeated);
    assert_eq!((scenario.test("adds").await, progress(&scenario).await), before);
}

/// A day on which half of the tests fail and pass again is an incident in the past as well.
pub async fn an_incident_of_the_past_is_recognized(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let runs = |failing: u32| -> Vec<ReportedRun> {
        (0..24).map(|test| scenario.run(&format!("test {test}"), test >= failing)).collect()
    };
    for day in 0..12 {
        import(&scenario, 100 + day, 40 - day, runs(0)).await;
    }
    let mut bad = past(&scenario, 7, 20);
    scenario.service.take_in(&bad, runs(12)).await.expect("stored");
    bad.id = scenario.upload(7).id;
    bad.received_at = bad.received_at.plus(Span::minutes(5));
    scenario.service.take_in(&bad, runs(0)).await.expect("stored");
    let list = TestList::Unhealthy(TestStatus::Flaky);
    assert_eq!(ids(stores, scenario.repo, list).await, [], "an incident flags nothing");
    let long_ago = Timestamp::from_unix_seconds(0);
    let known = stores.flaky.tests.incidents(scenario.repo, long_ago, 10).await.expect("a read");
    let started: Vec<Timestamp> = known.incidents.iter().map(|it| it.started_at).collect();
    assert_eq!(started, [scenario.now().minus(Span::days(20))]);
    assert_eq!(events(&scenario).await, []);
}
