//! `POST /v1/restartTestsOnPullRequest`.

use serde_json::json;

use crate::support::Server;

const OPERATION: &str = "restartTestsOnPullRequest";

#[actix_web::test]
async fn running_tests_are_restarted() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let before = server.entry(pr).await;
    assert_eq!(before["state"], "TESTING");
    assert_eq!(server.ok(OPERATION, json!({"pr": {"number": pr}})).await, json!({}));
    let after = server.entry(pr).await;
    assert_eq!(before["id"], after["id"]);
    assert_ne!(before["testRunId"], after["testRunId"]);
}

#[actix_web::test]
async fn without_tests_there_is_nothing_to_restart() {
    let server = Server::new().await;
    server.ok("updateQueue", json!({"state": "PAUSED"})).await;
    let pr = server.submitted("b").await;
    let reply = server.post(OPERATION, json!({"pr": {"number": pr}})).await;
    let problem = reply.problem(409, "nothing_to_restart");
    assert!(problem["detail"].as_str().expect("text").contains("NOT_READY"));
}

#[actix_web::test]
async fn outside_the_queue_there_is_nothing_to_restart() {
    let server = Server::new().await;
    let reply = server.post(OPERATION, json!({"pr": {"number": 9}})).await;
    reply.problem(404, "pull_request_not_in_queue");
}
