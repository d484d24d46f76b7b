//! `POST /v1/listMergeQueueTestingResults`.

use serde_json::{Value, json};
use signalbox_domain::queue::EffectClass;
use signalbox_domain::time::Span;
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server};

const OPERATION: &str = "listMergeQueueTestingResults";

fn since(server: &Server, days: u32) -> String {
    server.api.clock.now().minus(Span::days(days)).to_string()
}

#[actix_web::test]
async fn each_attempt_has_a_result_once_it_has_ended() {
    let server = Server::new().await;
    let good = server.submitted("b").await;
    let run = server.entry(good).await["testRunId"].clone();
    server.settle_but(&[EffectClass::Checks]).await;
    let body = json!({"since": since(&server, 1)});
    let none = json!({"testingResults": [], "totalItems": 0});
    assert_eq!(server.ok(OPERATION, body.clone()).await, none, "it is still being tested");
    server.ok("restartTestsOnPullRequest", json!({"pr": {"number": good}})).await;
    server.settle().await;
    let bad = server.submitted("bad").await;
    server.settle().await;
    server.clock.advance(Span::seconds(1));
    let reply = server.ok(OPERATION, body).await;
    let results = reply["testingResults"].as_array().expect("a list");
    let seen: Vec<_> = results
        .iter()
        .map(|it| (it["prNumber"].clone(), it["outcome"].clone(), it["cycleConclusion"].clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (json!(bad), json!("FAILED"), json!("FAILED")),
            (json!(good), json!("PASSED"), json!("MERGED")),
            (json!(good), json!("INTERRUPTED"), json!("MERGED")),
        ]
    );
    assert_eq!(results[2]["testRunId"], run);
    assert_eq!(results[1]["testRunId"], server.entry(good).await["verifiedByTestRun"]);
    assert_eq!(reply["totalItems"], 3);
    for result in results {
        let took = result["testingDurationMs"].as_u64().expect("a whole number");
        assert_eq!(took % 1000, 0, "{result}");
        assert!(result.get("bisection").is_none());
        assert_eq!(result["endedAt"].as_str().map(str::len), Some(24));
    }
}

#[actix_web::test]
async fn a_queued_pull_request_has_no_conclusion_and_a_removed_one_was_cancelled() {
    let server = Server::new().await;
    let (first, second) = (server.submitted("b").await, server.submitted("c").await);
    server.settle_but(&[EffectClass::Checks]).await;
    server.clock.advance(Span::seconds(90));
    server.ok("cancelPullRequest", json!({"pr": {"number": first}})).await;
    let reply = server.ok(OPERATION, json!({"since": since(&server, 1)})).await;
    let results = reply["testingResults"].as_array().expect("a list");
    let of = |pr: u32| results.iter().find(|it| it["prNumber"] == pr).expect("a result");
    assert_eq!(of(first)["outcome"], "CANCELLED");
    assert_eq!(of(first)["cycleConclusion"], "CANCELLED");
    assert!(of(first)["testingDurationMs"].as_u64().expect("a number") >= 90_000);
    assert_eq!(of(second)["outcome"], "INTERRUPTED", "what it was built on has left");
    assert!(of(second).get("cycleConclusion").is_none());
}

#[actix_web::test]
async fn results_are_paged_by_offset_and_bounded_by_time() {
    let server = Server::new().await;
    for file in ["b", "c", "d"] {
        server.submitted(file).await;
        server.settle().await;
        server.clock.advance(Span::hours(1));
    }
    let from = since(&server, 1);
    let page =
        |offset: u32| server.ok(OPERATION, json!({"since": from, "offset": offset, "take": 2}));
    let numbers = |page: &Value| -> Vec<u64> {
        let results = page["testingResults"].as_array().expect("a list");
        results.iter().map(|it| it["prNumber"].as_u64().expect("a number")).collect()
    };
    let (first, second, third) = (page(0).await, page(2).await, page(4).await);
    assert_eq!([numbers(&first), numbers(&second), numbers(&third)], [vec![3, 2], vec![1], vec![]]);
    for page in [&first, &second, &third] {
        assert_eq!(page["totalItems"], 3);
    }
    let ended = &first["testingResults"][1]["endedAt"];
    let exactly = server.ok(OPERATION, json!({"since": ended, "until": ended})).await;
    assert_eq!(numbers(&exactly), [2], "both ends are inside");
}

#[actix_web::test]
async fn words_follow_the_case_of_the_token() {
    let server = Server::new().await;
    server.submitted("b").await;
    server.settle().await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let body = json!({"since": since(&server, 1)});
    let result = server.post_as(&token, OPERATION, body).await.json()["testingResults"][0].clone();
    assert_eq!(
        (&result["outcome"], &result["cycleConclusion"]),
        (&json!("passed"), &json!("merged"))
    );
}

#[actix_web::test]
async fn the_window_has_at_most_forty_five_days() {
    let server = Server::new().await;
    assert_eq!(server.post(OPERATION, json!({})).await.pointers(), ["/since"]);
    let until = "2026-09-17T10:16:02Z";
    for (since, fits) in [
        ("2026-08-03T10:16:02Z", true),
        ("2026-08-03T10:16:01.999Z", false),
        ("2026-09-17T10:16:02Z", true),
        ("2026-09-17T10:16:02.001Z", false),
    ] {
        let reply = server.post(OPERATION, json!({"since": since, "until": until})).await;
        if fits {
            assert_eq!(reply.status, 200, "{since}: {}", reply.body);
        } else {
            assert_eq!(reply.pointers(), ["/since"], "{since}");
        }
    }
    let old = json!({"since": since(&server, 46)});
    assert_eq!(server.post(OPERATION, old).await.pointers(), ["/since"], "until is now");
    let wrong = json!({"since": 1, "until": "x", "offset": -1, "take": 0});
    let pointers = ["/since", "/until", "/offset", "/take"];
    assert_eq!(server.post(OPERATION, wrong).await.pointers(), pointers);
}
