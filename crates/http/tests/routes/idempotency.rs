//! Requests with an idempotency key.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::time::Span;

use crate::support::{Grant, Reply, Server};

async fn keyed_as(
    server: &Server,
    token: &str,
    key: &str,
    operation: &str,
    mut body: Value,
) -> Reply {
    if body.get("repo").is_none() {
        body["repo"] = json!({"host": "git.test", "owner": "acme", "name": "calc"});
        body["targetBranch"] = json!("main");
    }
    let request = TestRequest::post()
        .uri(&format!("/v1/{operation}"))
        .insert_header(("x-api-token", token))
        .insert_header(("idempotency-key", key));
    server.call(request.set_json(body)).await
}

async fn keyed(server: &Server, key: &str, operation: &str, body: Value) -> Reply {
    keyed_as(server, &server.token, key, operation, body).await
}

fn code(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).expect("a problem");
    body["code"].as_str().expect("a code").to_owned()
}

#[actix_web::test]
async fn a_repeat_gets_the_first_reply_and_changes_nothing() {
    let server = Server::without_queue().await;
    let create = json!({"concurrency": 2});
    let first = keyed(&server, "a", "createQueue", create.clone()).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (200, None));
    let again = keyed(&server, "\"a\"", "createQueue", create.clone()).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!(
        (again.json(), again.header("x-request-id")),
        (first.json(), again.header("x-request-id"))
    );
    // Without the key, and with that of another token, it is another request.
    for reply in [
        server.post("createQueue", create.clone()).await,
        keyed_as(&server, &server.grant(Grant::default()).await, "a", "createQueue", create).await,
    ] {
        assert_eq!(code(&reply), "merge_queue_exists");
    }
}

#[actix_web::test]
async fn a_reply_is_kept_for_a_day() {
    let server = Server::without_queue().await;
    let create = json!({"concurrency": 2});
    assert_eq!(keyed(&server, "a", "createQueue", create.clone()).await.status, 200);
    server.clock.advance(Span::seconds(24 * 3_600 - 1));
    assert_eq!(keyed(&server, "a", "createQueue", create.clone()).await.status, 200);
    server.clock.advance(Span::seconds(1));
    assert_eq!(code(&keyed(&server, "a", "createQueue", create).await), "merge_queue_exists");
}

#[actix_web::test]
async fn a_key_belongs_to_one_operation_and_body() {
    let server = Server::new().await;
    let pr = server.open("a").0;
    let submit = json!({"pr": {"number": pr}});
    assert_eq!(keyed(&server, "a", "submitPullRequest", submit.clone()).await.status, 200);
    for (operation, body) in [
        ("submitPullRequest", json!({"pr": {"number": pr}, "priority": "high"})),
        ("cancelPullRequest", submit.clone()),
    ] {
        let reply = keyed(&server, "a", operation, body).await;
        assert_eq!((reply.status, &*code(&reply)), (422, "idempotency_key_reused"));
    }
    assert_ne!(server.entry(pr).await["state"], "CANCELLED");
}

#[actix_web::test]
async fn an_error_changes_nothing_and_gives_the_key_back() {
    let server = Server::new().await;
    let missing = json!({"pr": {"number": 99}});
    for _ in 0..2 {
        let reply = keyed(&server, "a", "cancelPullRequest", missing.clone()).await;
        assert_eq!(code(&reply), "pull_request_not_in_queue");
    }
    let pr = server.submitted("a").await;
    let cancel = json!({"pr": {"number": pr}});
    assert_eq!(keyed(&server, "a", "cancelPullRequest", cancel).await.status, 200);
}

#[actix_web::test]
async fn a_request_that_is_being_carried_out_is_not_carried_out_twice() {
    let server = Server::new().await;
    let body = json!({"pr": {"number": server.open("a").0},
        "repo": {"host": "git.test", "owner": "acme", "name": "calc"}, "targetBranch": "main"});
    // The server died after the claim.
    let caller = server.api.authenticator.authenticate(&server.token, [127, 0, 0, 1].into()).await;
    let caller = caller.expect("an answer").expect("a caller");
    let hash = {
        use sha2::{Digest, Sha256};
        let text = [b"submitPullRequest\0".as_slice(), body.to_string().as_bytes()].concat();
        data_encoding::HEXLOWER.encode(&Sha256::digest(text))
    };
    server.api.idempotency.claim(&caller, "a", hash).await.expect("claimed");
    let reply = keyed(&server, "a", "submitPullRequest", body.clone()).await;
    assert_eq!((reply.status, &*code(&reply)), (409, "request_in_progress"));
    assert!(reply.header("retry-after").is_some());
    server.clock.advance(Span::minutes(2));
    assert_eq!(keyed(&server, "a", "submitPullRequest", body).await.status, 200);
}

#[actix_web::test]
async fn a_read_ignores_the_key() {
    let server = Server::new().await;
    let count = async || {
        let reply = keyed(&server, "a", "getQueue", json!({})).await;
        assert_eq!(reply.header("idempotent-replayed"), None);
        reply.json()["enqueuedPullRequests"].as_array().expect("a list").len()
    };
    assert_eq!(count().await, 0);
    server.submitted("a").await;
    assert_eq!(count().await, 1);
}

#[actix_web::test]
async fn a_reply_with_a_secret_is_not_kept() {
    let server = Server::new().await;
    let endpoint = json!({"url": "https://hooks.test/x", "repo": null});
    let create = async || keyed(&server, "a", "webhooks/create", endpoint.clone()).await;
    assert_eq!(create().await.status, 200);
    let again = create().await;
    assert_eq!((again.status, &*code(&again)), (409, "reply_not_kept"));
    assert!(!again.body.contains("whsec_"), "{}", again.body);
}

#[actix_web::test]
async fn an_invalid_key_is_refused_before_anything_changes() {
    let server = Server::without_queue().await;
    for key in ["", "a b", &"x".repeat(256)] {
        let reply = keyed(&server, key, "createQueue", json!({"concurrency": 2})).await;
        assert_eq!((reply.status, &*code(&reply)), (400, "validation_failed"), "{key}");
        assert!(reply.body.contains("Idempotency-Key must be 1 to 255"), "{}", reply.body);
    }
    assert_eq!(server.post("getQueue", json!({})).await.status, 404);
}

#[actix_web::test]
async fn expired_keys_are_deleted() {
    let server = Server::new().await;
    let pr = server.open("a").0;
    keyed(&server, "a", "submitPullRequest", json!({"pr": {"number": pr}})).await;
    let forget = async || server.stores.account.idempotency.forget(server.clock_now(), 10).await;
    assert_eq!(forget().await.expect("an answer"), 0);
    server.clock.advance(Span::hours(25));
    assert_eq!(forget().await.expect("an answer"), 1);
}
