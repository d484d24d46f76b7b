//! `POST /v1/getMergeQueueTestingDetails`.

use serde_json::{Value, json};
use signalbox_domain::queue::EffectClass;
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server};

const OPERATION: &str = "getMergeQueueTestingDetails";

async fn run_of(server: &Server, pr: u32) -> String {
    server.entry(pr).await["testRunId"].as_str().expect("a run").to_owned()
}

#[actix_web::test]
async fn a_run_that_is_being_built_has_no_commit_yet() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let id = run_of(&server, pr).await;
    let run = server.ok(OPERATION, json!({"testRunId": id})).await;
    let expected = json!({
        "testRunId": id,
        "requiredStatuses": [],
        "testBranch": format!("signalbox-merge/pr-{pr}/{id}"),
        "testBranchSha": "",
        "createdAt": run["createdAt"],
        "status": "IN_PROGRESS",
        "checkSuites": [{"checkRuns": []}],
        "statusChecks": [],
        "testedPullRequests": [
            {"prNumber": pr, "prUrl": "https://git.test/acme/calc/pull/1", "title": "Change 1"}
        ],
        "dependentPrs": []
    });
    assert_eq!(run, expected);
}

#[actix_web::test]
async fn a_run_that_has_ended_shows_its_checks_and_both_cases() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let id = run_of(&server, pr).await;
    server.settle().await;
    let lower = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    for (token, status, source) in
        [(&server.token, "SUCCEEDED", "TRUNK_CONFIG"), (&lower, "succeeded", "trunk_config")]
    {
        let run = server.post_as(token, OPERATION, json!({"testRunId": id})).await.json();
        assert_eq!(
            (&run["status"], &run["requiredStatusesSource"]),
            (&json!(status), &json!(source))
        );
        assert_eq!(run["requiredStatuses"], json!(["test"]));
        assert_eq!(run["testBranchSha"].as_str().map(str::len), Some(40));
        let check = &run["checkSuites"][0]["checkRuns"][0];
        assert_eq!(check["name"], "test");
        assert_eq!(
            (&check["status"], &check["conclusion"]),
            (&json!("COMPLETED"), &json!("SUCCESS"))
        );
    }
}

#[actix_web::test]
async fn without_an_id_all_runs_in_progress_are_listed() {
    let server = Server::new().await;
    assert_eq!(server.ok(OPERATION, json!({})).await, json!({"testRuns": []}));
    let (first, second) = (server.submitted("b").await, server.submitted("c").await);
    server.settle_but(&[EffectClass::Checks]).await;
    for body in [json!({}), json!({"testRunId": null}), json!({"testRunId": ""})] {
        let runs = server.ok(OPERATION, body).await;
        let runs = runs["testRuns"].as_array().expect("runs");
        let tested: Vec<_> =
            runs.iter().map(|run| run["testedPullRequests"][0]["prNumber"].clone()).collect();
        assert_eq!(tested, [json!(first), json!(second)]);
        assert_eq!(runs[1]["dependentPrs"], json!([first]));
    }
}

#[actix_web::test]
async fn the_id_of_a_bisection_branch_is_read_too() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let id = run_of(&server, pr).await;
    for form in [format!("{id}-bisection"), format!("{id}-bisection-2-left"), id.to_uppercase()] {
        assert_eq!(server.ok(OPERATION, json!({"testRunId": form})).await["testRunId"], id);
    }
}

#[actix_web::test]
async fn targets_are_shown_once_they_are_reported() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let targets = json!({"pr": {"number": pr}, "impactedTargets": ["//b", "//a"]});
    server.ok("setImpactedTargets", targets).await;
    let id = run_of(&server, pr).await;
    let run = server.ok(OPERATION, json!({"testRunId": id})).await;
    for key in ["impactedTargets", "impactedTargetsForTestedPrs"] {
        assert_eq!(run[key], json!(["//a", "//b"]));
    }
}

#[actix_web::test]
async fn a_run_that_is_not_there_is_404() {
    let server = Server::new().await;
    for id in ["0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "nonsense", &"x".repeat(100_000)] {
        let reply = server.post(OPERATION, json!({"testRunId": id})).await;
        reply.problem(404, "test_run_not_found");
        assert!(reply.body.len() < 1000, "what was sent is not sent back whole");
    }
    let wrong: Value = json!({"testRunId": 7});
    assert_eq!(server.post(OPERATION, wrong).await.pointers(), ["/testRunId"]);
}
