//! `POST /v1/createQueue`.

use serde_json::json;

use crate::support::Server;

const OPERATION: &str = "createQueue";

#[actix_web::test]
async fn a_queue_starts_with_the_defaults() {
    let server = Server::without_queue().await;
    let reply = server.post(OPERATION, json!({})).await;
    assert_eq!((reply.status, reply.json()), (200, json!({})));
    let queue = server.ok("getQueue", json!({})).await;
    for (key, value) in [
        ("state", json!("RUNNING")),
        ("mode", json!("SINGLE")),
        ("concurrency", json!(1)),
        ("bisectionConcurrency", json!(1)),
        ("testingTimeoutMinutes", json!(300)),
        ("mergeMethod", json!("SQUASH")),
        ("requiredStatuses", json!([])),
        ("enqueuedPullRequests", json!([])),
    ] {
        assert_eq!(queue[key], value, "{key}");
    }
}

#[actix_web::test]
async fn mode_and_concurrency_may_be_given_in_any_case() {
    let server = Server::without_queue().await;
    server.ok(OPERATION, json!({"mode": "Parallel", "concurrency": 1000})).await;
    let queue = server.ok("getQueue", json!({})).await;
    assert_eq!((&queue["mode"], &queue["concurrency"]), (&json!("PARALLEL"), &json!(1000)));
}

#[actix_web::test]
async fn a_branch_has_one_queue() {
    let server = Server::new().await;
    let problem = server.post(OPERATION, json!({})).await.problem(409, "merge_queue_exists");
    let words = "merge queue for branch `main` of acme/calc already exists";
    assert_eq!(problem["detail"], words);
    server.ok(OPERATION, json!({"targetBranch": "release/1.2"})).await;
}

#[actix_web::test]
async fn bounds_are_kept() {
    let server = Server::without_queue().await;
    for concurrency in [json!(0), json!(1001), json!(1.5), json!(-1), json!("5")] {
        let body = json!({"concurrency": concurrency, "mode": "both"});
        assert_eq!(server.post(OPERATION, body).await.pointers(), ["/mode", "/concurrency"]);
    }
}

#[actix_web::test]
async fn a_repository_that_is_not_on_the_host_has_no_queue() {
    let server = Server::without_queue().await;
    let repo = json!({"host": "git.test", "owner": "acme", "name": "nope"});
    let reply = server.post(OPERATION, json!({"repo": repo})).await;
    let problem = reply.problem(404, "repository_not_found");
    assert_eq!(problem["detail"], "repository git.test/acme/nope not found");
}
