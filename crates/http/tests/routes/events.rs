//! Events: the log, the stream, and the catalog.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::time::Span;
use signalbox_domain::token::{Scope, TokenText};

use crate::flaky_lists::make_flaky;
use crate::support::{Grant, Server, calc};

fn types(reply: &Value) -> Vec<String> {
    let events = reply["events"].as_array().expect("events");
    events.iter().map(|it| it["type"].as_str().expect("a name").to_owned()).collect()
}

/// Every event, two at a time, each checked against the schema that is served for it.
async fn all(server: &Server, token: &str, query: &str) -> Vec<Value> {
    let (mut seen, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let path = format!("/v1/events?limit=2&after={after}{query}");
        let request = TestRequest::get().uri(&path).insert_header(("x-api-token", token));
        let page = server.call(request).await.json();
        let events = page["events"].as_array().expect("events");
        assert!(events.len() <= 2);
        seen.extend(events.iter().cloned());
        page["next"].as_str().expect("a position").clone_into(&mut after);
        if after == page["newest"].as_str().expect("a position") {
            return seen;
        }
    }
}

#[actix_web::test]
async fn events_are_listed_in_order_and_match_their_schemas() {
    let server = Server::new().await;
    server.submitted("b").await;
    server.settle().await;
    make_flaky(&server, 1, &["adds"]).await;
    server.ok("updateQueue", json!({"state": "PAUSED", "stateReason": "a release"})).await;
    let events = all(&server, &server.token, "").await;
    let told: Vec<&str> = events.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(
        told,
        [
            "pull_request.submitted",
            "pull_request.queued",
            "pull_request.testing",
            "pull_request.merged",
            "test_case.monitor_status_changed",
            "test_case.status_changed",
            "v2.test_case.status_changed",
            "queue.state_changed",
        ]
    );
    for event in &events {
        let name = event["type"].as_str().expect("a name");
        let request = TestRequest::get().uri(&format!("/v1/events/schemas/{name}"));
        let reply = server.call(request).await;
        assert_eq!(reply.header("content-type"), Some("application/schema+json"));
        let schema: Value = serde_json::from_str(&reply.body).expect("JSON");
        let options = jsonschema::options().should_validate_formats(true);
        let validator = options.build(&schema).expect("a schema");
        let errors: Vec<String> =
            validator.iter_errors(&event["payload"]).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{event:#}\n{errors:#?}");
        assert_eq!(event["payload"]["type"], name);
        assert!(event["id"].is_string() && event["timestamp"].is_string());
    }
}

#[actix_web::test]
async fn the_whole_test_of_an_event_is_the_test_that_the_api_shows() {
    let server = Server::new().await;
    make_flaky(&server, 1, &["adds"]).await;
    let events = all(&server, &server.token, "&type=test_case.status_changed").await;
    let mut told = events[0]["payload"]["test_case"].clone();
    let id = told["id"].clone();
    let asked = json!({"org_url_slug": "acme", "test_id": id});
    let shown = server.ok("flaky-tests/get-test-details", asked).await;
    // A list has no deprecated key.
    told.as_object_mut().expect("an object").remove("test_suite");
    assert_eq!(told, shown["test"]);
}

#[actix_web::test]
async fn events_are_filtered_by_name_and_position() {
    let server = Server::new().await;
    server.submitted("b").await;
    let page = server.get("/v1/events?type=pull_request.queued,pull_request.testing").await.json();
    assert_eq!(types(&page), ["pull_request.queued", "pull_request.testing"]);
    let after = page["events"][0]["position"].as_str().expect("a position");
    let rest = server.get(&format!("/v1/events?after={after}")).await.json();
    assert_eq!(types(&rest), ["pull_request.testing"]);
    assert_eq!(rest["next"], rest["newest"]);
    let query = "?after=x&limit=0&type=pull_request.merged,made.up";
    let pointers = server.get(&format!("/v1/events{query}")).await.pointers();
    assert_eq!(pointers, ["/after", "/limit", "/type"]);
}

#[actix_web::test]
async fn a_token_sees_what_its_scopes_and_repositories_allow() {
    let server = Server::new().await;
    server.submitted("b").await;
    make_flaky(&server, 1, &["adds"]).await;
    let mut seen = Vec::new();
    for scope in [Scope::QueueRead, Scope::TestsRead] {
        let token = server.grant(Grant { scopes: vec![scope], ..Grant::default() }).await;
        let events = all(&server, &token, "").await;
        seen.push(events.len());
        assert!(events.iter().all(|it| {
            let of_tests = it["type"].as_str().is_some_and(|name| name.contains("test_case."));
            of_tests == (scope == Scope::TestsRead)
        }));
    }
    assert_eq!(seen, [3, 3]);
    let writes = Grant {
        scopes: vec![Scope::QueueAdmin, Scope::TestsUpload, Scope::TestsAdmin],
        ..Grant::default()
    };
    let token = server.grant(writes).await;
    for path in ["/v1/events", "/v1/events/stream"] {
        let request = TestRequest::get().uri(path).insert_header(("x-api-token", token.as_str()));
        server.call(request).await.problem(403, "missing_scope");
    }
    let mut elsewhere = calc();
    elsewhere.name = "elsewhere".to_owned();
    for (repos, expected) in [(vec![calc()], 6), (vec![elsewhere], 0)] {
        let token = server.grant(Grant { repos, ..Grant::default() }).await;
        assert_eq!(all(&server, &token, "").await.len(), expected);
    }
}

#[actix_web::test]
async fn a_stream_sends_new_events_and_resumes_at_its_position() {
    let server = Server::new().await;
    let org = server.stores.account.orgs.list().await.expect("organizations")[0].id;
    let mut stream = server.follow(TestRequest::get().uri("/v1/events/stream")).await;
    assert_eq!(stream.next().await.as_deref(), Some(": events\nretry: 1000\n\n"));
    server.submitted("b").await;
    server.api.events.hub.ring(org);
    let text = stream.next().await.expect("events");
    let frames: Vec<&str> = text.trim_end().split("\n\n").collect();
    assert_eq!(frames.len(), 3, "{text}");
    let lines: Vec<&str> = frames[0].lines().collect();
    assert_eq!(lines[1], "event: pull_request.submitted");
    let payload: Value = serde_json::from_str(lines[2].trim_start_matches("data: ")).expect("JSON");
    assert_eq!(payload["pr_number"], 1);
    let last = lines[0].trim_start_matches("id: ").to_owned();
    let again = TestRequest::get().uri("/v1/events/stream?after=0");
    let mut again = server.follow(again.insert_header(("last-event-id", last))).await;
    again.next().await.expect("a beginning");
    let rest = again.next().await.expect("events");
    assert_eq!(rest.trim_end(), frames[1..].join("\n\n"));
    server.api.events.hub.stop();
    assert_eq!((stream.next().await, again.next().await), (None, None));
    let refused = server.get("/v1/events/stream").await;
    refused.problem(429, "too_many_streams");
}

#[actix_web::test]
async fn a_stream_ends_with_its_token() {
    let server = Server::new().await;
    let org = server.stores.account.orgs.list().await.expect("organizations")[0].id;
    let mut stream = server.follow(TestRequest::get().uri("/v1/events/stream")).await;
    stream.next().await.expect("a beginning");
    server.submitted("b").await;
    let hash = TokenText::parse(&server.token).expect("a text").hash();
    let token =
        server.stores.account.tokens.find_by_hash(hash).await.expect("read").expect("a token");
    let now = server.api.clock.now();
    assert!(
        server
            .stores
            .account
            .tokens
            .revoke(token.id, now, uuid::Uuid::from_u128(1))
            .await
            .expect("revoked")
    );
    server.clock.advance(Span::seconds(1));
    server.api.events.hub.ring(org);
    assert_eq!(stream.next().await, None);
}

#[actix_web::test]
async fn what_another_server_committed_is_found_by_looking() {
    let server = Server::new().await;
    let hub = &server.api.events.hub;
    let path = "/v1/events/stream?type=pull_request.testing";
    let mut stream = server.follow(TestRequest::get().uri(path)).await;
    stream.next().await.expect("a beginning");
    let look = async || {
        let agenda = server.stores.runtime.agenda.agenda(server.api.ids.new_id()).await;
        hub.seen(&agenda.expect("an agenda").newest_events);
    };
    look().await;
    server.submitted("b").await;
    look().await;
    let text = stream.next().await.expect("an event");
    assert!(text.contains("event: pull_request.testing") && !text.contains("queued"), "{text}");
}

#[actix_web::test]
async fn a_token_has_a_bounded_number_of_streams() {
    let server = Server::new().await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(server.follow(TestRequest::get().uri("/v1/events/stream")).await);
    }
    server.get("/v1/events/stream").await.problem(429, "too_many_streams");
    streams.pop();
    let reply = server.get("/v1/events/stream").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    let wrong = TestRequest::get().uri("/v1/events/stream").insert_header(("last-event-id", "x"));
    let wrong = wrong.insert_header(("x-api-token", server.token.as_str()));
    assert_eq!(server.call(wrong).await.pointers(), ["/Last-Event-ID"]);
}

#[actix_web::test]
async fn the_catalog_needs_no_token() {
    let server = Server::new().await;
    let listed = server.call(TestRequest::get().uri("/v1/events/schemas")).await.json();
    let events = listed["events"].as_array().expect("events");
    assert_eq!(events.len(), signalbox_webhooks::catalog::all().count());
    for event in events {
        let path = event["schema"].as_str().expect("an address");
        assert_eq!(server.call(TestRequest::get().uri(path)).await.status, 200);
    }
    let unknown = server.call(TestRequest::get().uri("/v1/events/schemas/made.up")).await;
    unknown.problem(404, "event_not_found");
}
