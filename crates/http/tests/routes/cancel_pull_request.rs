//! `POST /v1/cancelPullRequest`.

use serde_json::json;
use signalbox_domain::queue::EffectClass;

use crate::support::Server;

const OPERATION: &str = "cancelPullRequest";

#[actix_web::test]
async fn a_pull_request_is_cancelled_once() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let body = json!({"pr": {"number": pr.to_string()}});
    assert_eq!(server.ok(OPERATION, body.clone()).await, json!({}));
    let entry = server.entry(pr).await;
    assert_eq!(entry["state"], "CANCELLED");
    assert_eq!(entry["isCurrentlySubmittedToQueue"], false);
    assert_eq!(entry["exit"]["reason"], "USER_REQUESTED");
    assert_eq!(entry["exit"]["actor"], "token ci");
    server.post(OPERATION, body).await.problem(404, "pull_request_not_in_queue");
}

#[actix_web::test]
async fn one_that_was_never_submitted_is_not_in_the_queue() {
    let server = Server::new().await;
    let reply = server.post(OPERATION, json!({"pr": {"number": 9}})).await;
    let problem = reply.problem(404, "pull_request_not_in_queue");
    assert_eq!(problem["detail"], "pull request 9 is not in the merge queue");
}

#[actix_web::test]
async fn one_that_is_being_merged_cannot_be_stopped() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    server.settle_but(&[EffectClass::Checks]).await;
    server.settle_but(&[EffectClass::Host]).await;
    let reply = server.post(OPERATION, json!({"pr": {"number": pr}})).await;
    reply.problem(409, "merge_in_progress");
}
