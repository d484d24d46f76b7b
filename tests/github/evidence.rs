//! Failed jobs that say nothing about a pull request do not evict it: they run again on the same
//! candidate, or count as passed, and only within what the evidence allows.

use serde_json::json;
use signalbox_domain::queue::Change;
use signalbox_testkit::ci_double::CiDouble;
use signalbox_testkit::github_double::{Carelessness, Reported};

use crate::system::System;

async fn system() -> System {
    System::new(Carelessness::default(), json!({ "concurrency": 4 })).await
}

fn reruns(system: &System) -> usize {
    let log = system.world.double.log();
    log.iter().filter(|it| it.path.ends_with("/rerun-failed-jobs")).count()
}

/// A report of tests, each with the message of its failure.
fn report(tests: &[(&str, Option<&str>)]) -> String {
    let case = |(name, failure): &(&str, Option<&str>)| match failure {
        None => format!("<testcase classname=\"shop\" name=\"{name}\" time=\"0.1\"/>"),
        Some(message) => format!(
            "<testcase classname=\"shop\" name=\"{name}\" time=\"0.1\">\
             <failure message=\"{message}\">{message}</failure></testcase>"
        ),
    };
    let cases: String = tests.iter().map(case).collect();
    format!("<testsuite name=\"shop\" tests=\"{}\">{cases}</testsuite>", tests.len())
}

/// Uploads a report of the job `test`, and waits until it is stored.
async fn upload(system: &System, branch: &str, sha: &str, report: String) {
    upload_as(system, None, branch, sha, report).await;
}

/// The same with an identity token of CI.
async fn upload_as(
    system: &System,
    identity: Option<&str>,
    branch: &str,
    sha: &str,
    report: String,
) {
    let query = format!("repo=github.com/Acme/calc&branch={branch}&sha={sha}&job=test&check=test");
    let receipt = system.upload_as(identity, &query, report).await;
    let id = receipt["upload_id"].as_str().expect("an id").to_owned();
    system
        .until("the upload was read", async |it: &System| {
            it.get(&format!("/v1/flaky-tests/uploads/{id}")).await["state"] == "read"
        })
        .await;
}

/// Uploads the results of the job `test` for a candidate.
async fn results(system: &System, change: &Change, sha: &str, tests: &[(&str, Option<&str>)]) {
    let branch = format!("signalbox-merge/pr-{}", change.pr);
    upload(system, &branch, sha, report(tests)).await;
}

/// A test `wobbly` that is flaky: it failed and passed on the same commit of `main`.
async fn with_a_flaky_test(system: &System) {
    let main = system.world.bare(&["rev-parse", "main"]);
    for failure in [Some("connection reset"), None] {
        let tests = [("wobbly", failure), ("solid", None), ("steady", None)];
        upload(system, "main", main.trim(), report(&tests)).await;
    }
    let page = json!({ "page_size": 10, "page_token": "" });
    let asked = json!({ "org_url_slug": "acme", "status": "FLAKY", "page_query": page });
    system
        .until("the test is flaky", async |it: &System| {
            let listed = it.call("flaky-tests/list-unhealthy-tests", asked.clone()).await;
            listed["tests"][0]["name"] == "wobbly"
        })
        .await;
}

/// CI that leaves the result to the test.
async fn under_test(system: &System, name: &str) -> (Change, String) {
    system.world.double.set_ci(|_| Vec::new());
    let change = system.world.open(name, &[(&format!("{name}.txt"), "x\n")]);
    system.submit(&change).await;
    let sha = system.candidate(&change).await;
    (change, sha)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_and_one_that_never_started_run_again() {
    for lost in ["cancelled", "startup_failure"] {
        let system = system().await;
        system.world.double.set_ci_attempts(move |_, attempt| {
            vec![("test", if attempt == 1 { lost } else { "success" })]
        });
        let change = system.world.open("one", &[("b.txt", "b\n")]);
        system.submit(&change).await;
        system.until_state(&change, "MERGED").await;
        assert_eq!(reruns(&system), 1, "{lost}");
        system.only_tested_trees_have_landed();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_stays_lost_fails_after_two_retries_and_the_reason_is_shown_meanwhile() {
    let system = system().await;
    let (change, sha) = under_test(&system, "one").await;
    let double = &system.world.double;
    double.report_run(&sha, &Reported::ended("test", "cancelled"));
    for attempt in 1..=2 {
        let shown = json!({
            "kind": "retrying", "class": "INFRASTRUCTURE", "attempt": attempt, "of": 2,
            "evidence": ["test: cancelled"],
        });
        system
            .until("the retry is shown", async |it: &System| {
                it.entry(&change).await["waitReason"] == shown
            })
            .await;
        system.until("it runs again", async |it: &System| reruns(it) == attempt).await;
        double.report_run(&sha, &Reported::ended("test", "cancelled"));
    }
    system.until_state(&change, "FAILED").await;
    assert_eq!(reruns(&system), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_flaky_test_runs_again_and_a_new_failure_of_it_or_of_another_test_does_not() {
    let system = system().await;
    with_a_flaky_test(&system).await;
    let double = &system.world.double;
    // Quarantine is off, so that the failure is not excused where the tests run.
    let (innocent, sha) = under_test(&system, "innocent").await;
    results(&system, &innocent, &sha, &[("wobbly", Some("timed out")), ("solid", None)]).await;
    double.report_run(&sha, &Reported::ended("test", "failure"));
    system.until_waits(&innocent, "retrying").await;
    let reason = system.entry(&innocent).await["waitReason"].clone();
    assert_eq!(
        (&reason["class"], &reason["evidence"]),
        (&json!("KNOWN_FLAKY"), &json!(["wobbly"]))
    );
    system.until("it runs again", async |it: &System| reruns(it) == 1).await;
    double.report_run(&sha, &Reported::ended("test", "success"));
    system.until_state(&innocent, "MERGED").await;

    let (guilty, sha) = under_test(&system, "guilty").await;
    results(
        &system,
        &guilty,
        &sha,
        &[("wobbly", Some("timed out")), ("solid", Some("2 is not 3"))],
    )
    .await;
    double.report_run(&sha, &Reported::ended("test", "failure"));
    system.until_state(&guilty, "FAILED").await;
    assert_eq!(reruns(&system), 1, "a new failure never runs again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_with_test_results_waits_for_them_and_is_excused_by_the_quarantine() {
    let system = system().await;
    with_a_flaky_test(&system).await;
    let quarantine = json!({ "quarantineEnabled": true, "autoQuarantine": "flaky" });
    system.call("flaky-tests/update-settings", quarantine).await;
    let settings = json!({
        "evidenceChecks": ["test"], "evidenceWaitSeconds": 3600, "evidenceNeedsIdentity": false,
    });
    system.call("updateQueue", settings).await;
    let (change, sha) = under_test(&system, "one").await;
    system.world.double.report_run(&sha, &Reported::ended("test", "failure"));
    system.until_waits(&change, "awaiting_reports").await;
    results(&system, &change, &sha, &[("wobbly", Some("timed out")), ("solid", None)]).await;
    system.until_state(&change, "MERGED").await;
    assert_eq!(reruns(&system), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_job_of_a_candidate_has_its_check_excused() {
    let candidate = |pr: u32, sha: &str, event: &str| {
        json!({
            "repository": "acme/calc", "event_name": event, "sha": sha, "run_id": "17",
            "ref": format!("refs/heads/signalbox-merge/pr-{pr}"),
        })
    };
    let audience = "https://signalbox.test";
    let ci = CiDouble::start(candidate(0, "", "push"));
    let trusted = format!(
        "[[ci]]\nkind = \"github-actions\"\nissuer = \"{}\"\naudience = \"{audience}\"\n\
         organization = \"acme\"\nhost = \"github.com\"\nrepositories = [\"acme\"]\n",
        ci.issuer,
    );
    let system = System::with(Carelessness::default(), json!({}), &trusted).await;
    with_a_flaky_test(&system).await;
    let quarantine = json!({ "quarantineEnabled": true, "autoQuarantine": "flaky" });
    system.call("flaky-tests/update-settings", quarantine).await;
    let settings = json!({ "evidenceChecks": ["test"], "knownFlakyRetries": 0 });
    system.call("updateQueue", settings).await;
    let excusable = report(&[("wobbly", Some("timed out")), ("solid", None)]);
    let before = system.world.bare(&["rev-parse", "main"]);
    let other = before.trim().to_owned();
    for (name, events, of_candidate, state) in [
        // The upload states the candidate's commit, as every holder of a stored token can.
        ("stored", vec![None], true, "FAILED"),
        ("both", vec![Some("push"), None], true, "FAILED"),
        ("own-job", vec![Some("push")], true, "MERGED"),
        ("run-by-hand", vec![Some("workflow_dispatch")], true, "awaiting_reports"),
        ("job-of-another-commit", vec![Some("push")], false, "awaiting_reports"),
    ] {
        let (change, sha) = under_test(&system, name).await;
        let branch = format!("signalbox-merge/pr-{}", change.pr);
        for event in events {
            let token = event.map(|event| {
                let proven = if of_candidate { &sha } else { &other };
                ci.set_job(candidate(change.pr.0, proven, event));
                ci.token(audience)
            });
            let report = match &token {
                None if name == "both" => report(&[("another", None)]),
                _ => excusable.clone(),
            };
            upload_as(&system, token.as_deref(), &branch, &sha, report).await;
        }
        system.world.double.report_run(&sha, &Reported::ended("test", "failure"));
        if state == "awaiting_reports" {
            system.until_waits(&change, state).await;
            system.call("cancelPullRequest", json!({ "pr": { "number": change.pr.0 } })).await;
        } else {
            system.until_state(&change, state).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_ran_out_of_time_is_not_excused() {
    let system = system().await;
    with_a_flaky_test(&system).await;
    let quarantine = json!({ "quarantineEnabled": true, "autoQuarantine": "flaky" });
    system.call("flaky-tests/update-settings", quarantine).await;
    let settings = json!({
        "evidenceChecks": ["test"], "knownFlakyRetries": 0, "evidenceNeedsIdentity": false,
    });
    system.call("updateQueue", settings).await;
    let (change, sha) = under_test(&system, "one").await;
    results(&system, &change, &sha, &[("wobbly", Some("timed out")), ("solid", None)]).await;
    system.world.double.report_run(&sha, &Reported::ended("test", "timed_out"));
    system.until_state(&change, "FAILED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_depend_on_a_repeated_one_are_waited_for() {
    let system = system().await;
    system.world.double.require("main", &["test", "package"], &[]);
    system.world.double.set_ci_attempts(|_, attempt| match attempt {
        1 => vec![("test", "cancelled"), ("package", "skipped")],
        _ => vec![("test", "success"), ("package", "failure")],
    });
    let change = system.world.open("one", &[("b.txt", "b\n")]);
    system.submit(&change).await;
    system.until_state(&change, "FAILED").await;
    assert_eq!(reruns(&system), 1);
    assert_eq!(system.world.double.landed_trees().len(), 1, "only the base");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_result_is_not_needed_is_cancelled() {
    let system = system().await;
    let (change, sha) = under_test(&system, "one").await;
    let double = &system.world.double;
    double.report_run(&sha, &Reported::begun("test"));
    system.until_waits(&change, "checks_running").await;
    system.call("cancelPullRequest", json!({ "pr": { "number": change.pr.0 } })).await;
    let cancelled = |it: &System| {
        it.world
            .double
            .log()
            .iter()
            .any(|call| call.path.ends_with("/cancel") && call.method == "POST")
    };
    system.until("its workflow run is cancelled", async |it: &System| cancelled(it)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_permission_to_run_jobs_again_a_lost_job_fails_as_before() {
    let system = system().await;
    let double = &system.world.double;
    double.plan(
        "POST",
        "/rerun-failed-jobs",
        9,
        signalbox_testkit::github_double::Fault::Status(403),
    );
    let (change, sha) = under_test(&system, "one").await;
    double.report_run(&sha, &Reported::ended("test", "cancelled"));
    system.until_state(&change, "FAILED").await;
    let entry = system.entry(&change).await;
    assert!(entry.to_string().contains("could not be run again"), "{entry}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_red_target_holds_a_pull_request_until_it_is_repaired() {
    let system = system().await;
    let main = system.world.bare(&["rev-parse", "main"]);
    let red = |number: u32| {
        report(&[("adds", Some(&format!("no answer after {number} ms"))), ("solid", None)])
    };
    upload(&system, "main", main.trim(), red(1)).await;
    let (innocent, sha) = under_test(&system, "innocent").await;
    let branch = format!("signalbox-merge/pr-{}", innocent.pr);
    let double = &system.world.double;
    for attempt in 1..=2 {
        upload(&system, &branch, &sha, red(10 + attempt)).await;
        double.report_run(&sha, &Reported::ended("test", "failure"));
        system.until("it runs again, once", async |it: &System| reruns(it) == 1).await;
    }
    system.until_waits(&innocent, "target_red").await;
    let entry = system.entry(&innocent).await;
    assert_eq!(entry["waitReason"]["tests"], json!(["adds"]));
    assert_eq!(entry["state"], "PENDING");
    // Another one is not even started.
    let behind = system.world.open("behind", &[("behind.txt", "x\n")]);
    system.submit(&behind).await;
    system.until_waits(&behind, "target_red").await;

    double.set_ci(|_| vec![("test", "success")]);
    system.world.git(&["checkout", "-q", "main"]);
    system.world.commit(&[("repair.txt", "x\n")], "repair");
    system.world.push("main");
    system.until_state(&innocent, "MERGED").await;
    system.until_state(&behind, "MERGED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_log_shows_a_failing_machine_runs_again_and_the_end_of_its_log_is_shown() {
    let system = system().await;
    let messages = json!({ "infrastructureMessages": ["No space left on device"] });
    system.call("updateQueue", messages).await;
    let double = &system.world.double;
    let log = "2026-01-02T03:04:05.1234567Z FAILED: 1 of 3\n\
               2026-01-02T03:04:06.1234567Z write: No space left on device\n\
               2026-01-02T03:04:07.1234567Z ##[error]Process completed with exit code 1.\n\
               2026-01-02T03:04:08.1234567Z Post job cleanup.\n";
    double.set_log("test", log);
    let (innocent, sha) = under_test(&system, "innocent").await;
    double.report_run(&sha, &Reported::ended("test", "failure"));
    let shown = json!({
        "kind": "retrying", "class": "INFRASTRUCTURE", "attempt": 1, "of": 2,
        "evidence": ["test: write: No space left on device"],
    });
    system
        .until("the retry is shown", async |it: &System| {
            it.entry(&innocent).await["waitReason"] == shown
        })
        .await;
    system.until("it runs again", async |it: &System| reruns(it) == 1).await;
    double.report_run(&sha, &Reported::ended("test", "success"));
    system.until_state(&innocent, "MERGED").await;

    // A failed test counts, whatever else was printed.
    let (guilty, sha) = under_test(&system, "guilty").await;
    results(&system, &guilty, &sha, &[("adds", Some("2 is not 3")), ("solid", None)]).await;
    double.report_run(&sha, &Reported::ended("test", "failure"));
    system.until_state(&guilty, "FAILED").await;
    assert_eq!(reruns(&system), 1, "a new failure never runs again");
    let asked = json!({ "pr": { "number": guilty.pr.0 } });
    let explained = system.call("explainFailure", asked).await;
    let check = &explained["failedChecks"][0];
    let end = "FAILED: 1 of 3\nwrite: No space left on device\n\
               ##[error]Process completed with exit code 1.";
    assert_eq!(check["output"], end, "{explained}");

    // Another message is none.
    double.set_log("test", "2 is not 3\n");
    let (other, sha) = under_test(&system, "other").await;
    double.report_run(&sha, &Reported::ended("test", "failure"));
    system.until_state(&other, "FAILED").await;
    assert_eq!(reruns(&system), 1);
}

/// A queue that awaits the results of the check for so many seconds, and whose machines fail.
async fn with_failing_machines(seconds: u32) -> System {
    let system = system().await;
    let settings = json!({
        "infrastructureMessages": ["No space left on device"], "evidenceChecks": ["test"],
        "evidenceWaitSeconds": seconds,
    });
    system.call("updateQueue", settings).await;
    system.world.double.set_log("test", "write: No space left on device\n");
    system
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_come_after_a_failure_decide_before_its_log() {
    let system = with_failing_machines(3600).await;
    let (guilty, sha) = under_test(&system, "guilty").await;
    system.world.double.report_run(&sha, &Reported::ended("test", "failure"));
    system.until_waits(&guilty, "awaiting_reports").await;
    results(&system, &guilty, &sha, &[("adds", Some("2 is not 3")), ("solid", None)]).await;
    system.until_state(&guilty, "FAILED").await;
    assert_eq!(reruns(&system), 0, "a new failure never runs again");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_results_a_log_decides_and_that_of_another_attempt_is_not_shown() {
    let system = with_failing_machines(1).await;
    let double = &system.world.double;
    let (unlucky, sha) = under_test(&system, "unlucky").await;
    double.report_run(&sha, &Reported::ended("test", "failure"));
    for attempt in 1..=2 {
        system.until("it runs again", async |it: &System| reruns(it) == attempt).await;
        double.report_run(&sha, &Reported::ended("test", "cancelled"));
    }
    system.until_state(&unlucky, "FAILED").await;
    let asked = json!({ "pr": { "number": unlucky.pr.0 } });
    let explained = system.call("explainFailure", asked).await;
    assert_eq!(explained["failedChecks"][0]["output"], "", "{explained}");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_name_another_job_keep_a_log_from_deciding() {
    let system = with_failing_machines(10).await;
    let (guilty, sha) = under_test(&system, "guilty").await;
    system.world.double.report_run(&sha, &Reported::ended("test", "failure"));
    system.until_waits(&guilty, "awaiting_reports").await;
    let branch = format!("signalbox-merge/pr-{}", guilty.pr);
    let query = format!("repo=github.com/Acme/calc&branch={branch}&sha={sha}&job=unit");
    let failed = report(&[("adds", Some("2 is not 3")), ("solid", None)]);
    system.upload_as(None, &query, failed).await;
    system.until_state(&guilty, "FAILED").await;
    assert_eq!(reruns(&system), 0, "a new failure never runs again");
}
