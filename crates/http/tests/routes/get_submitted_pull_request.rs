//! `POST /v1/getSubmittedPullRequest`.

use serde_json::{Value, json};
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server, calc};

const OPERATION: &str = "getSubmittedPullRequest";

#[actix_web::test]
async fn every_known_key_is_there_while_it_is_tested() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let entry = server.entry(pr).await;
    let head = server.host.shown(&calc(), signalbox_domain::ids::PrNumber(pr)).head.to_string();
    let expected = json!({
        "id": entry["id"],
        "state": "TESTING",
        "stateChangedAt": entry["stateChangedAt"],
        "priorityValue": 100,
        "priorityName": "medium",
        "usedDefaultPriorityName": "medium",
        "skipTheLine": false,
        "noBatch": false,
        "forceEnqueued": false,
        "isCurrentlySubmittedToQueue": true,
        "readiness": {
            "requiresImpactedTargets": false,
            "doesBaseBranchMatch": true,
            "gitHubMergeability": "MERGEABLE",
            "hasImpactedTargets": false
        },
        "verifiedByTestRun": null,
        "testRunId": entry["testRunId"],
        "prNumber": pr,
        "prTitle": "Change 1",
        "prSha": head,
        "prBaseBranch": "main",
        "prAuthor": "mona",
        "position": 1,
        "reason": "its candidate is being built",
        "waitReason": {"kind": "building_candidate"},
        "exit": null
    });
    assert_eq!(entry, expected);
    let at = entry["stateChangedAt"].as_str().expect("text");
    assert!(at.len() == 24 && at.ends_with('Z'), "{at}");
    assert_eq!(entry["id"].as_str().map(str::len), Some(36));
}

#[actix_web::test]
async fn a_merged_one_shows_its_proof() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let run = server.entry(pr).await["testRunId"].clone();
    server.settle().await;
    let entry = server.entry(pr).await;
    assert_eq!(entry["state"], "MERGED");
    assert_eq!(entry["verifiedByTestRun"], run);
    assert_eq!(entry["isCurrentlySubmittedToQueue"], false);
    assert_eq!((&entry["waitReason"], &entry["position"]), (&Value::Null, &Value::Null));
    let exit = &entry["exit"];
    assert_eq!(exit["testedTree"], exit["landedTree"]);
    assert_eq!(exit["sha"].as_str().map(str::len), Some(40));
    assert_eq!(exit["reason"], "MERGE_GRAPH_MERGE");
}

#[actix_web::test]
async fn a_failed_one_has_the_failed_check_and_the_culprit() {
    let server = Server::new().await;
    let pr = server.submitted("bad").await;
    server.settle().await;
    let entry = server.entry(pr).await;
    assert_eq!(entry["state"], "FAILED");
    assert_eq!(entry["exit"]["reason"], "TEST_RUN_REQUIRED_STATUS_FAILED");
    assert_eq!(entry["exit"]["culprit"], "itself");
    assert!(entry["reason"].as_str().expect("text").starts_with("failed: "), "{entry}");
}

#[actix_web::test]
async fn words_follow_the_case_of_the_token() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let body = json!({"pr": {"number": pr}});
    let entry = server.post_as(&token, OPERATION, body.clone()).await.json();
    assert_eq!(entry["state"], "testing");
    assert_eq!(entry["readiness"]["gitHubMergeability"], "mergeable");
    server.settle().await;
    let entry = server.post_as(&token, OPERATION, body).await.json();
    assert_eq!((&entry["state"], &entry["exit"]["state"]), (&json!("merged"), &json!("merged")));
    assert_eq!(entry["prTitle"], "Change 1", "only values of states change their case");
}

#[actix_web::test]
async fn it_is_found_by_its_branch_too() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let entry = server.ok(OPERATION, json!({"pr": {"branch": format!("change-{pr}")}})).await;
    assert_eq!(entry["prNumber"], pr);
    let reply = server.post(OPERATION, json!({"pr": {"branch": "unknown"}})).await;
    let problem = reply.problem(404, "pull_request_not_in_queue");
    assert!(problem["detail"].as_str().expect("text").contains("branch `unknown`"));
}

#[actix_web::test]
async fn exactly_one_of_number_and_branch_is_needed() {
    let server = Server::new().await;
    for pr in [json!({}), json!({"number": 1, "branch": "b"}), json!({"number": null})] {
        assert_eq!(server.post(OPERATION, json!({"pr": pr})).await.pointers(), ["/pr"]);
    }
    let pr = json!({"branch": "--upload-pack=x"});
    assert_eq!(server.post(OPERATION, json!({"pr": pr})).await.pointers(), ["/pr/branch"]);
}

#[actix_web::test]
async fn one_that_was_never_submitted_is_404() {
    let server = Server::new().await;
    let pr = server.open("b").0;
    let reply = server.post(OPERATION, json!({"pr": {"number": pr}})).await;
    let problem = reply.problem(404, "pull_request_not_in_queue");
    let words =
        "pull request 1 of acme/calc was never submitted to the merge queue for branch `main`";
    assert_eq!(problem["detail"], words);
}

#[actix_web::test]
async fn dependencies_that_have_not_merged_are_listed_with_their_states() {
    let server = Server::new().await;
    let pr = server.open("b");
    let description = "Depends-On: #99, acme/other#3";
    server.host.edit(&calc(), pr, |it| description.clone_into(&mut it.body));
    server.ok("submitPullRequest", json!({"pr": {"number": pr.0}})).await;
    server.settle().await;
    let expected = json!([
        {"name": "#99", "state": "MISSING"},
        {"name": "acme/other#3", "state": "MISSING"}
    ]);
    assert_eq!(server.entry(pr.0).await["dependencies"], expected);
}
