//! Which results of one commit are compared, the same on every store.

use signalbox_domain::flaky::{Base, BranchClass, Origin, ReportedRun, StatusReason, TestStatus};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Stores, TestList};
use signalbox_domain::time::Span;
use signalbox_services::ResultsSink;

use super::flaky_lists::ids;
use super::flaky_scenario::Scenario;

/// Takes runs in that come from a job and a base.
async fn report(scenario: &Scenario<'_>, origin: Origin, commit: u32, runs: Vec<ReportedRun>) {
    let mut upload = scenario.upload(commit);
    upload.origin = origin;
    scenario.service.take_in(&upload, runs).await.expect("stored");
    scenario.clock.advance(Span::minutes(1));
}

/// The same in a pull request.
async fn report_pr(scenario: &Scenario<'_>, base: Base<'_>, commit: u32, passed: bool) {
    let mut upload = scenario.upload(commit);
    upload.origin = Origin::new(Some(&["unit"]), base);
    (upload.pr, upload.class) = (Some(PrNumber(7)), BranchClass::PullRequest);
    upload.branch = "topic".into();
    let runs = vec![scenario.run("adds", passed)];
    scenario.service.take_in(&upload, runs).await.expect("stored");
    scenario.clock.advance(Span::minutes(1));
}

async fn status(scenario: &Scenario<'_>) -> (TestStatus, StatusReason) {
    let standing = scenario.test("adds").await.test.standing;
    (standing.value, standing.reason)
}

fn job(name: &str) -> Origin {
    Origin::new(Some(&[name]), Base::Itself)
}

const FINE: (TestStatus, StatusReason) = (TestStatus::Healthy, StatusReason::NothingFound);
const MAYBE: (TestStatus, StatusReason) = (TestStatus::Healthy, StatusReason::MaybePlatformOrBase);
const FLAKY: (TestStatus, StatusReason) = (TestStatus::Flaky, StatusReason::PassOnRetry);

/// A test that fails in one job and passes in another is not flaky, unless it is in one of them.
pub async fn a_bug_of_one_platform_is_no_flake(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let run = |passed| vec![scenario.run("adds", passed)];
    for commit in 0..10 {
        report(&scenario, job("linux"), commit, run(true)).await;
        report(&scenario, job("windows"), commit, run(false)).await;
        scenario.wait(2);
    }
    scenario.service.measure().await.expect("measured");
    assert_eq!(status(&scenario).await, FINE);
    report(&scenario, job("windows"), 9, run(true)).await;
    assert_eq!(status(&scenario).await, FLAKY);
}

/// A commit that is merged into another base is other code.
pub async fn a_pull_request_on_a_broken_base_is_no_flake(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    report_pr(&scenario, Base::Merged("a"), 1, true).await;
    report_pr(&scenario, Base::Merged("b"), 1, false).await;
    assert_eq!(status(&scenario).await, FINE);
    report_pr(&scenario, Base::Unknown, 2, true).await;
    report_pr(&scenario, Base::Unknown, 2, false).await;
    assert_eq!(status(&scenario).await, MAYBE);
    report_pr(&scenario, Base::Merged("b"), 1, true).await;
    assert_eq!(status(&scenario).await, FLAKY);
}

/// Where no job is named, one disagreement is a suspicion that ends with the recovery time, and a
/// second one after passing runs is evidence.
pub async fn results_of_unknown_jobs_are_a_suspicion(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let unknown = Origin::new(None, Base::Itself);
    let run = |passed| vec![scenario.run("adds", passed)];
    report(&scenario, unknown, 1, run(false)).await;
    report(&scenario, unknown, 1, run(true)).await;
    assert_eq!(status(&scenario).await, MAYBE);
    let text = scenario.test("adds").await.test.standing.reason_text();
    assert!(text.ends_with("; maybe: platform"), "{text}");
    assert_eq!(scenario.quarantined(&["adds"]).await, [false]);
    scenario.wait(8 * 24);
    while scenario.service.measure().await.expect("measured") > 0 {}
    assert_eq!(status(&scenario).await, FINE, "it is over");
    for commit in [2, 3] {
        report(&scenario, unknown, commit, run(false)).await;
        report(&scenario, unknown, commit, run(true)).await;
        assert_eq!(status(&scenario).await, if commit == 2 { MAYBE } else { FLAKY });
        for green in 0..4 {
            scenario.wait(5);
            report(&scenario, unknown, commit * 100 + green, run(true)).await;
        }
    }
}

/// A failure and a success in one upload are of one job and base, whatever it is.
pub async fn a_retry_within_an_upload_needs_no_job(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let again = ReportedRun { attempt: 1, ..scenario.run("adds", true) };
    report(&scenario, Origin::default(), 1, vec![scenario.run("adds", false), again]).await;
    assert_eq!(status(&scenario).await, FLAKY);
}

/// The failures of an incident are excluded in every job, and count again when it is dismissed.
pub async fn an_incident_excludes_evidence_of_every_origin(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let name = |test: u32| format!("test {test}");
    let all = |passed: bool| (0..24).map(|test| scenario.run(&name(test), passed)).collect();
    for commit in 100..112 {
        report(&scenario, Origin::default(), commit, all(true)).await;
        scenario.wait(1);
    }
    let retried = (0..24_u32).flat_map(|test| {
        let again = ReportedRun { attempt: 1, ..scenario.run(&name(test), true) };
        [scenario.run(&name(test), false), again]
    });
    report(&scenario, Origin::default(), 7, retried.collect()).await;
    report(&scenario, job("linux"), 7, all(true)).await;
    let flaky = async || ids(stores, scenario.repo, TestList::Unhealthy(TestStatus::Flaky)).await;
    assert!(flaky().await.is_empty());
    let (caller, repo) = (&scenario.caller, scenario.name());
    let id = scenario.service.incidents(caller, repo).await.expect("incidents")[0].id;
    for confirm in [false, true, false] {
        scenario.clock.advance(Span::minutes(1));
        let decided = scenario.service.decide_incident(caller, repo, id, confirm, None).await;
        assert_eq!(decided.expect("decided").state.excludes(), confirm);
        assert_eq!(flaky().await.len(), if confirm { 0 } else { 24 });
    }
}
