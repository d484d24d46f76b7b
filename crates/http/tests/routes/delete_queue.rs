//! `POST /v1/deleteQueue`.

use serde_json::json;
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server};

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
    assert!(problem["detail"].as_str().expect("text").contains("1 still in it"));
    server.ok("cancelPullRequest", json!({"pr": {"number": pr}})).await;
    server.ok(OPERATION, json!({})).await;
}

/// The public service's Terraform provider takes every 400 for "not empty", and fails to destroy what
/// is answered by 404.
#[actix_web::test]
async fn clients_of_the_public_service_get_the_statuses_that_they_know() {
    let server = Server::new().await;
    let live = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let pr = server.submitted("b").await;
    let problem = server.post_as(&live, OPERATION, json!({})).await;
    problem.problem(400, "merge_queue_not_empty");
    server.ok("cancelPullRequest", json!({"pr": {"number": pr}})).await;
    for _ in 0..2 {
        let reply = server.post_as(&live, OPERATION, json!({})).await;
        assert_eq!((reply.status, reply.json()), (200, json!({})));
    }
    server.post("getQueue", json!({})).await.problem(404, "merge_queue_not_found");
    let elsewhere = json!({"repo": {"host": "git.test", "owner": "acme", "name": "none"}});
    assert_eq!(server.post_as(&live, OPERATION, elsewhere.clone()).await.status, 200);
    server.post(OPERATION, elsewhere).await.problem(404, "repository_not_found");
}
