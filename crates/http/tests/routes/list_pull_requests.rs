//! `POST /v1/listPullRequests`.

use serde_json::{Value, json};
use signalbox_domain::time::Span;
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server};

const OPERATION: &str = "listPullRequests";

fn numbers(page: &Value) -> Vec<u64> {
    let entries = page["pullRequests"].as_array().expect("a list");
    entries.iter().map(|it| it["prNumber"].as_u64().expect("a number")).collect()
}

async fn listed(server: &Server, body: Value) -> Vec<u64> {
    numbers(&server.ok(OPERATION, body).await)
}

#[actix_web::test]
async fn live_and_ended_ones_are_listed_newest_first() {
    let server = Server::new().await;
    assert_eq!(server.ok(OPERATION, json!({})).await, json!({"pullRequests": []}));
    server.submitted("b").await;
    server.submitted("bad").await;
    server.settle().await;
    server.clock.advance(Span::seconds(1));
    server.submitted("d").await;
    let page = server.ok(OPERATION, json!({})).await;
    let seen: Vec<_> = page["pullRequests"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (it["prNumber"].clone(), it["state"].clone(), it["position"].clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (json!(3), json!("TESTING"), json!(1)),
            (json!(2), json!("FAILED"), Value::Null),
            (json!(1), json!("MERGED"), Value::Null),
        ]
    );
    assert!(page.get("nextCursor").is_none(), "there is no next page");
    let queue = server.ok("getQueue", json!({})).await;
    assert_eq!(page["pullRequests"][0], queue["enqueuedPullRequests"][0]);
}

#[actix_web::test]
async fn pages_follow_each_other_until_there_is_no_cursor() {
    let server = Server::new().await;
    for file in ["b", "c", "d", "e", "f"] {
        server.submitted(file).await;
    }
    for take in 1..=6 {
        let (mut seen, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = server.ok(OPERATION, json!({"take": take, "cursor": cursor})).await;
            seen.extend(numbers(&page));
            match page.get("nextCursor") {
                None => break,
                Some(next) => {
                    assert_eq!(next.as_str().map(str::len), Some(36), "a UUID");
                    cursor = next.clone();
                }
            }
        }
        assert_eq!(seen, [5, 4, 3, 2, 1], "pages of {take}");
    }
}

#[actix_web::test]
async fn one_that_failed_in_the_window_is_found_after_it_came_back() {
    let server = Server::new().await;
    let pr = server.submitted("bad").await;
    server.settle().await;
    let failed_at = server.entry(pr).await["stateChangedAt"].clone();
    server.clock.advance(Span::hours(1));
    server.ok("submitPullRequest", json!({"pr": {"number": pr}})).await;
    // What was shown is inside, at both ends.
    let page = server.ok(OPERATION, json!({"since": failed_at, "until": failed_at})).await;
    assert_eq!(page["pullRequests"][0]["state"], "TESTING");
    assert_eq!(listed(&server, json!({"until": failed_at})).await, [1]);
    let later = server.api.clock.now().to_string().replace('Z', "+00:00");
    assert_eq!(listed(&server, json!({"since": later})).await, [] as [u64; 0]);
    assert_eq!(listed(&server, json!({"state": "failed"})).await, [] as [u64; 0]);
    assert_eq!(listed(&server, json!({"state": "Testing", "since": failed_at})).await, [1]);
}

#[actix_web::test]
async fn words_follow_the_case_of_the_token() {
    let server = Server::new().await;
    server.submitted("b").await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let page = server.post_as(&token, OPERATION, json!({"state": "TESTING"})).await.json();
    assert_eq!(page["pullRequests"][0]["state"], "testing");
}

#[actix_web::test]
async fn every_field_that_is_wrong_is_named() {
    let server = Server::new().await;
    let uuid = "4f0e9c1e-8a55-5d0f-9b1c-2a35b0a6f0d2";
    let body = json!({
        "state": "LOST", "since": "yesterday", "until": 7, "cursor": uuid, "take": 101
    });
    let reply = server.post(OPERATION, body).await;
    assert_eq!(reply.pointers(), ["/state", "/since", "/until", "/cursor", "/take"]);
    assert!(reply.body.contains("NOT_READY, PENDING"), "the known states are listed");
    for (body, pointer) in [
        (json!({"take": 0}), "/take"),
        (json!({"take": "7"}), "/take"),
        (json!({"cursor": "next"}), "/cursor"),
        (json!({"since": "2026-09-02T00:00:00Z", "until": "2026-09-01T00:00:00Z"}), "/since"),
    ] {
        assert_eq!(server.post(OPERATION, body.clone()).await.pointers(), [pointer], "{body}");
    }
}

#[actix_web::test]
async fn the_queue_must_be_there() {
    let server = Server::without_queue().await;
    server.post(OPERATION, json!({})).await.problem(404, "merge_queue_not_found");
}
