//! `POST /v1/reportCheckResult`.

use serde_json::{Value, json};
use signalbox_domain::queue::HostStatuses;
use signalbox_domain::token::Scope;

use crate::support::{Grant, Server, calc};

const OPERATION: &str = "reportCheckResult";

/// A server whose repository requires `test` of an external CI, and these statuses of the host.
async fn external(own: &[&str]) -> Server {
    let server = Server::new().await;
    let external = vec!["test".to_owned()];
    let names = external.iter().cloned().chain(own.iter().map(ToString::to_string)).collect();
    server.host.set_required_statuses(HostStatuses {
        repository: Some(names),
        external,
        ..HostStatuses::default()
    });
    server
}

/// A pull request under test, and a report of success for it.
async fn under_test(server: &Server) -> (u32, Value) {
    let pr = server.submitted("b").await;
    server.settle().await;
    let runs = server.ok("getMergeQueueTestingDetails", json!({})).await;
    let run = &runs["testRuns"][0];
    let report = json!({
        "testRunId": run["testRunId"], "sha": run["testBranchSha"], "check": "test",
        "status": "COMPLETED", "conclusion": "SUCCESS",
    });
    (pr, report)
}

fn with(report: &Value, changes: &Value) -> Value {
    let mut report = report.clone();
    for (key, value) in changes.as_object().expect("an object") {
        report[key] = value.clone();
    }
    report
}

async fn reporter(server: &Server) -> String {
    let (scopes, repos) = (vec![Scope::ChecksReport], vec![calc()]);
    server.grant(Grant { scopes, repos, ..Grant::default() }).await
}

#[actix_web::test]
async fn the_event_has_what_a_ci_needs() {
    let server = external(&[]).await;
    let (pr, report) = under_test(&server).await;
    let page = server.get("/v1/events?type=test_run.checks_requested").await.json();
    let events = page["events"].as_array().expect("events");
    assert_eq!(events.len(), 1);
    let payload = &events[0]["payload"];
    let branch =
        format!("signalbox-merge/pr-{pr}/{}", report["testRunId"].as_str().expect("an id"));
    let expected = json!({
        "type": "test_run.checks_requested",
        "timestamp": payload["timestamp"],
        "repository": {"host": "git.test", "owner": "acme", "name": "calc"},
        "target_branch": "main",
        "action": "checks_requested",
        "status": "checks_requested",
        "pr_numbers": [pr],
        "test_run_id": report["testRunId"],
        "test_branch": branch,
        "test_branch_sha": report["sha"],
        "is_bisection": false,
        "checks": ["test"],
    });
    assert_eq!(*payload, expected);
}

#[actix_web::test]
async fn a_success_of_the_ci_merges() {
    let server = external(&[]).await;
    let token = reporter(&server).await;
    let (pr, report) = under_test(&server).await;
    let running = json!({
        "status": "in_progress", "conclusion": null, "url": "https://ci.test/7", "summary": "half",
    });
    server.post_as(&token, OPERATION, with(&report, &running)).await.json();
    assert_eq!(server.entry(pr).await["state"], "TESTING");
    let details = json!({"testRunId": report["testRunId"]});
    let run = server.ok("getMergeQueueTestingDetails", details.clone()).await;
    let shown = json!({
        "name": "test", "url": "https://ci.test/7", "status": "IN_PROGRESS", "summary": "half",
    });
    assert_eq!(run["checkSuites"][0]["checkRuns"], json!([shown]));
    let reply = server.post_as(&token, OPERATION, report.clone()).await;
    assert_eq!(reply.json(), json!({}));
    server.settle().await;
    assert_eq!(server.entry(pr).await["state"], "MERGED");
    let run = server.ok("getMergeQueueTestingDetails", details).await;
    assert_eq!(run["status"], "SUCCEEDED");
}

#[actix_web::test]
async fn a_failure_fails_the_pull_request_with_its_summary() {
    let server = external(&[]).await;
    let (pr, report) = under_test(&server).await;
    let failed = json!({"conclusion": "FAILURE", "summary": "3 tests failed"});
    server.ok(OPERATION, with(&report, &failed)).await;
    server.settle().await;
    let entry = server.entry(pr).await;
    assert_eq!(entry["state"], "FAILED");
    assert!(entry.to_string().contains("test: 3 tests failed"), "{entry}");
}

#[actix_web::test]
async fn reports_about_anything_else_are_refused_and_change_nothing() {
    let server = external(&["lint"]).await;
    let token = reporter(&server).await;
    server.host.set_checks_hang(true);
    let pr = server.submitted("b").await;
    server.settle_but(&[signalbox_domain::queue::EffectClass::Checks]).await;
    let runs = server.ok("getMergeQueueTestingDetails", json!({})).await;
    let run = &runs["testRuns"][0];
    let report = json!({
        "testRunId": run["testRunId"], "sha": run["testBranchSha"], "check": "test",
        "status": "COMPLETED", "conclusion": "SUCCESS",
    });
    let nowhere = "00000000-0000-0000-0000-000000000009";
    for (change, status, code) in [
        (json!({"sha": "a".repeat(40)}), 409, "commit_not_tested"),
        (json!({"check": "lint"}), 409, "check_not_external"),
        (json!({"check": "deploy"}), 409, "check_not_external"),
        (json!({"testRunId": nowhere}), 404, "test_run_not_found"),
        (json!({"testRunId": "nonsense"}), 404, "test_run_not_found"),
        (json!({"targetBranch": "release"}), 404, "merge_queue_not_found"),
    ] {
        for conclusion in ["SUCCESS", "FAILURE"] {
            let change = with(&change, &json!({"conclusion": conclusion}));
            server.post_as(&token, OPERATION, with(&report, &change)).await.problem(status, code);
        }
    }
    let runs = server.ok("getMergeQueueTestingDetails", json!({})).await;
    assert_eq!(runs["testRuns"][0], *run, "nothing was recorded");
    assert_eq!(server.entry(pr).await["state"], "TESTING");
}

#[actix_web::test]
async fn a_result_is_final_before_and_after_the_end_of_its_run() {
    let server = external(&[]).await;
    let token = reporter(&server).await;
    let (pr, report) = under_test(&server).await;
    let running = with(&report, &json!({"status": "IN_PROGRESS", "conclusion": null}));
    server.post_as(&token, OPERATION, report.clone()).await.json();
    for _ in 0..2 {
        server.post_as(&token, OPERATION, report.clone()).await.json();
        for contradiction in [with(&report, &json!({"conclusion": "FAILURE"})), running.clone()] {
            let reply = server.post_as(&token, OPERATION, contradiction).await;
            let problem = reply.problem(409, "check_completed");
            assert!(problem["detail"].as_str().expect("text").contains("SUCCESS"), "{problem}");
        }
        server.settle().await;
        assert_eq!(server.entry(pr).await["state"], "MERGED");
    }
}

#[actix_web::test]
async fn a_cancelled_run_accepts_no_result() {
    let server = external(&[]).await;
    let token = reporter(&server).await;
    let (pr, report) = under_test(&server).await;
    server.ok("restartTestsOnPullRequest", json!({"pr": {"number": pr}})).await;
    server.settle().await;
    let reply = server.post_as(&token, OPERATION, report).await;
    reply.problem(409, "test_run_ended");
    assert_eq!(server.entry(pr).await["state"], "TESTING", "the new run waits for the CI");
}

#[actix_web::test]
async fn a_token_reports_for_its_own_repositories_only() {
    let server = external(&[]).await;
    let (pr, report) = under_test(&server).await;
    let mut elsewhere = calc();
    elsewhere.name = "elsewhere".to_owned();
    let limited = Grant { repos: vec![elsewhere], ..Grant::default() };
    let other = Grant { org: "other", ..Grant::default() };
    for (grant, code) in [(limited, "repository_not_found"), (other, "merge_queue_not_found")] {
        let token = server.grant(grant).await;
        server.post_as(&token, OPERATION, report.clone()).await.problem(404, code);
    }
    assert_eq!(server.entry(pr).await["state"], "TESTING");
}

#[actix_web::test]
async fn forms_that_are_wrong_are_named() {
    let server = external(&[]).await;
    let (_, report) = under_test(&server).await;
    let empty = json!({"testRunId": null, "sha": null, "check": null, "status": null});
    assert_eq!(
        server.post(OPERATION, with(&report, &empty)).await.pointers(),
        ["/testRunId", "/sha", "/check", "/status"]
    );
    for (change, pointer) in [
        (json!({"sha": "main"}), "/sha"),
        (json!({"check": ""}), "/check"),
        (json!({"check": "x".repeat(256)}), "/check"),
        (json!({"status": "DONE"}), "/status"),
        (json!({"conclusion": "GREEN"}), "/conclusion"),
        (json!({"conclusion": null}), "/conclusion"),
        (json!({"status": "IN_PROGRESS"}), "/conclusion"),
        (json!({"url": "javascript:alert(1)"}), "/url"),
        (json!({"url": "https://"}), "/url"),
        (json!({"url": "https://ci.test/a b"}), "/url"),
        (json!({"url": format!("https://ci.test/{}", "x".repeat(2_000))}), "/url"),
        (json!({"summary": "two\nlines"}), "/summary"),
        (json!({"summary": "x".repeat(501)}), "/summary"),
    ] {
        let reply = server.post(OPERATION, with(&report, &change)).await;
        assert_eq!(reply.pointers(), [pointer], "{change}");
    }
}
