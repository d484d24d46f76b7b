//! `POST /v1/deleteQueue`.

use serde_json::json;

use crate::support::Server;

const OPERATION: &str = "deleteQueue";

#[actix_web::test]
async fn an_empty_queue_is_deleted_and_its_branch_is_free() {
    let server = Server::new().await;
    assert_eq!(server.ok(OPERATION, json!({})).await, json!({}));
    server.post("getQueue", json!({})).await.problem(404, "merge_queue_not_found");
    server.post(OPERATION, json!({})).await.problem(404, "merge_queue_not_found");
    server.ok("createQueue", json!({})).await;
}

#[actix_web::test]
async fn a_queue_with_entries_stays() {
    let server = Server::new().await;
    let pr = server.submitted("b").await;
    let problem = server.post(OPERATION, json!({})).await.problem(409, "merge_queue_not_empty");
    assert!(problem["detail"].as_str().expect("text").contains("1 pull requests are in it"));
    server.ok("cancelPullRequest", json!({"pr": {"number": pr}})).await;
    server.ok(OPERATION, json!({})).await;
}
