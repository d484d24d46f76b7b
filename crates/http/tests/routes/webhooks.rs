//! Webhooks: endpoints, secrets, deliveries, replays.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::ids::OrgSlug;
use signalbox_domain::time::Span;
use signalbox_domain::webhook::Sent;

use crate::support::{Grant, Reply, Server};

const URL: &str = "https://hooks.acme.test/x";

async fn call(server: &Server, operation: &str, body: Value) -> Reply {
    let request = TestRequest::post()
        .uri(&format!("/v1/webhooks/{operation}"))
        .insert_header(("x-api-token", server.token.as_str()));
    server.call(request.set_json(body)).await
}

async fn ok(server: &Server, operation: &str, body: Value) -> Value {
    let reply = call(server, operation, body).await;
    assert_eq!(reply.status, 200, "{operation}: {}", reply.body);
    reply.json()
}

async fn created(server: &Server) -> String {
    let created = ok(server, "create", json!({"url": URL})).await;
    created["webhook"]["id"].as_str().expect("an id").to_owned()
}

/// Something happens in the organization of the server's token.
async fn happens(server: &Server, kind: &str) {
    let slug = OrgSlug::new("acme").expect("a slug");
    let org = server.stores.account.orgs.find_by_slug(&slug).await.expect("a read").expect("one");
    server.hooks.happens(org.id, kind, server.api.clock.now());
}

/// Creates messages from events, and sends due ones.
async fn send(server: &Server) {
    let hooks = &server.api.webhooks;
    while hooks.fan_out().await.expect("messages") > 0 {}
    for failing in [false, true] {
        for leased in hooks.lease(9, failing).await.expect("leases") {
            for message in hooks.due(&leased, hooks.turn_end(), 99).await.expect("messages") {
                assert!(hooks.deliver(&leased, &message).await.expect("kept"));
            }
            hooks.release(&leased).await.expect("released");
        }
    }
}

fn answered(status: u16) -> Sent {
    Sent::Answered { status, abort: false, retry_after: None, body: format!("status {status}") }
}

#[actix_web::test]
async fn a_secret_is_shown_when_it_is_made_and_never_again() {
    let server = Server::new().await;
    let body = json!({
        "url": URL, "description": "bot", "events": ["pull_request.merged", "pull_request.merged"]
    });
    let created = ok(&server, "create", body).await;
    assert_eq!(created["secret"], "whsec_1");
    let webhook = &created["webhook"];
    assert_eq!((&webhook["url"], &webhook["enabled"]), (&json!(URL), &json!(true)));
    assert_eq!(webhook["events"], json!(["pull_request.merged"]));
    let id = webhook["id"].as_str().expect("an id");
    let read = call(&server, "get", json!({"webhookId": id})).await;
    let list = call(&server, "list", json!({})).await;
    assert_eq!(read.json(), *webhook);
    assert_eq!(list.json()["webhooks"], json!([webhook]));
    let names = list.json()["knownEvents"].as_array().map(Vec::len);
    assert_eq!(names, Some(3));
    let rotated = ok(&server, "rotate-secret", json!({"webhookId": id})).await;
    assert_eq!(rotated["secret"], "whsec_2");
    let secrets = rotated["webhook"]["secrets"].as_array().expect("secrets");
    assert_eq!((secrets.len(), &secrets[0]["until"]), (2, &Value::Null));
    let day = server.api.clock.now().plus(Span::days(1)).to_string();
    assert_eq!(secrets[1]["until"], json!(day));
    for reply in [read, list, call(&server, "get", json!({"webhookId": id})).await] {
        assert!(!reply.body.contains("whsec_"), "{}", reply.body);
    }
}

#[actix_web::test]
async fn fields_that_break_a_rule_are_named() {
    let server = Server::new().await;
    let id = created(&server).await;
    for (operation, body, pointers) in [
        ("create", json!({}), vec!["/url"]),
        ("create", json!({"url": "http://a.test/"}), vec!["/url"]),
        ("create", json!({"url": URL, "events": ["nonsense"]}), vec!["/events"]),
        ("create", json!({"url": URL, "events": [7]}), vec!["/events/0"]),
        (
            "create",
            json!({"url": URL, "events": vec!["pull_request.merged"; 101]}),
            vec!["/events"],
        ),
        ("create", json!({"url": 7, "enabled": 1}), vec!["/url", "/enabled"]),
        ("create", json!({"url": URL, "description": "x".repeat(501)}), vec!["/description"]),
        ("update", json!({"webhookId": id, "url": "ftp://a.test/"}), vec!["/url"]),
        (
            "update",
            json!({"webhookId": id, "events": vec!["pull_request.merged"; 101]}),
            vec!["/events"],
        ),
        ("update", json!({"webhookId": "x"}), vec!["/webhookId"]),
        ("rotate-secret", json!({"webhookId": id, "overlapHours": 721}), vec!["/overlapHours"]),
        ("test", json!({"webhookId": id, "event": "nonsense"}), vec!["/event"]),
        (
            "deliveries",
            json!({"webhookId": id, "state": "x", "pageSize": 0}),
            vec!["/state", "/pageSize"],
        ),
        ("deliveries", json!({"webhookId": id, "pageToken": "x"}), vec!["/pageToken"]),
        ("deliveries", json!({"webhookId": id, "since": "now"}), vec!["/since"]),
        ("replay", json!({"webhookId": id}), vec![""]),
        ("replay", json!({"webhookId": id, "until": "2026-01-01T00:00:00Z"}), vec![""]),
        ("replay", json!({"webhookId": id, "messageId": "x"}), vec!["/messageId"]),
    ] {
        let reply = call(&server, operation, body.clone()).await;
        assert_eq!(reply.pointers(), pointers, "{operation} {body}");
    }
}

#[actix_web::test]
async fn an_endpoint_is_changed_switched_and_deleted() {
    let server = Server::new().await;
    let id = created(&server).await;
    let update = async |change: Value| {
        let mut body = json!({"webhookId": id});
        for (key, value) in change.as_object().expect("an object") {
            body[key] = value.clone();
        }
        ok(&server, "update", body).await
    };
    let changed =
        update(json!({"url": "https://b.test/", "events": ["pull_request.failed"]})).await;
    assert_eq!(changed["url"], "https://b.test/");
    assert_eq!(changed["events"], json!(["pull_request.failed"]));
    let off = update(json!({"enabled": false, "events": []})).await;
    assert_eq!((&off["enabled"], &off["offReason"]), (&json!(false), &json!("requested")));
    call(&server, "test", json!({"webhookId": id})).await.problem(409, "webhook_off");
    happens(&server, "pull_request.merged").await;
    send(&server).await;
    assert!(server.hooks.posted().is_empty());
    assert_eq!(update(json!({"enabled": true})).await["offReason"], Value::Null);
    send(&server).await;
    assert!(server.hooks.posted().is_empty(), "events while it was off are skipped");
    update(json!({"enabled": false})).await;
    happens(&server, "pull_request.failed").await;
    update(json!({"enabled": true, "catchUp": true})).await;
    send(&server).await;
    assert_eq!(server.hooks.posted().len(), 1, "unless requested");
    ok(&server, "delete", json!({"webhookId": id})).await;
    for operation in ["get", "update", "delete", "rotate-secret", "test", "deliveries"] {
        let reply = call(&server, operation, json!({"webhookId": id})).await;
        reply.problem(404, "webhook_not_found");
    }
}

#[actix_web::test]
async fn an_organization_has_so_many_endpoints_and_no_more() {
    let server = Server::new().await;
    for _ in 0..3 {
        created(&server).await;
    }
    call(&server, "create", json!({"url": URL})).await.problem(409, "too_many_webhooks");
}

#[actix_web::test]
async fn only_events_of_the_filter_and_of_the_organization_are_sent() {
    let server = Server::new().await;
    happens(&server, "pull_request.merged").await;
    ok(&server, "create", json!({"url": URL, "events": ["pull_request.merged"]})).await;
    let token = server.grant(Grant { org: "other", ..Grant::default() }).await;
    let other = TestRequest::post()
        .uri("/v1/webhooks/create")
        .insert_header(("x-api-token", token))
        .set_json(json!({"url": "https://other.test/"}));
    assert_eq!(server.call(other).await.status, 200);
    for kind in ["pull_request.failed", "pull_request.merged", "queue.state_changed"] {
        happens(&server, kind).await;
    }
    send(&server).await;
    let posted = server.hooks.posted();
    assert_eq!(posted.len(), 1, "{posted:?}");
    assert_eq!(
        (posted[0].0.as_str(), posted[0].2.as_str()),
        (URL, "{\"type\":\"pull_request.merged\",\"number\":3}")
    );
    send(&server).await;
    assert!(server.hooks.posted().is_empty(), "once each");
}

#[actix_web::test]
async fn an_endpoint_without_a_list_receives_the_default_events() {
    let server = Server::new().await;
    let id = created(&server).await;
    let list = call(&server, "list", json!({})).await.json();
    assert_eq!(list["defaultEvents"], json!(["pull_request.merged", "pull_request.failed"]));
    happens(&server, "queue.state_changed").await;
    happens(&server, "pull_request.failed").await;
    send(&server).await;
    let posted = server.hooks.posted();
    assert_eq!(posted.len(), 1, "{posted:?}");
    assert_eq!(posted[0].2, "{\"type\":\"pull_request.failed\",\"number\":2}");
    let all = json!({"webhookId": id, "events": list["knownEvents"]});
    ok(&server, "update", all).await;
    happens(&server, "queue.state_changed").await;
    send(&server).await;
    assert_eq!(server.hooks.posted().len(), 1);
}

#[actix_web::test]
async fn deliveries_list_every_attempt_and_are_paged() {
    let server = Server::new().await;
    let id = created(&server).await;
    server.hooks.answer([answered(500)]);
    happens(&server, "pull_request.merged").await;
    send(&server).await;
    server.clock.advance(Span::seconds(6));
    send(&server).await;
    let page = ok(&server, "deliveries", json!({"webhookId": id})).await;
    let delivery = &page["deliveries"][0];
    assert_eq!(
        (&delivery["state"], &delivery["event"]),
        (&json!("delivered"), &json!("pull_request.merged"))
    );
    assert_eq!(delivery["body"], "{\"type\":\"pull_request.merged\",\"number\":1}");
    let tries = delivery["attempts"].as_array().expect("tries");
    let shown: Vec<_> =
        tries.iter().map(|it| (it["number"].as_u64(), it["status"].as_u64())).collect();
    assert_eq!(shown, [(Some(1), Some(500)), (Some(2), Some(200))]);
    assert_eq!(tries[0]["response"], "status 500");
    assert_eq!(tries[0]["requestHeaders"][1]["value"], "1 hidden");
    let posted = server.hooks.posted();
    assert_eq!(posted[0], posted[1], "the same id and body in every attempt");
    assert_eq!(delivery["id"], json!(posted[0].1));
    for _ in 0..4 {
        happens(&server, "pull_request.failed").await;
    }
    send(&server).await;
    let (mut seen, mut token) = (Vec::new(), Value::Null);
    loop {
        let body = json!({"webhookId": id, "pageSize": 2, "pageToken": token});
        let page = ok(&server, "deliveries", body).await;
        for delivery in page["deliveries"].as_array().expect("a page") {
            seen.push(delivery["id"].as_str().expect("an id").to_owned());
        }
        token = page["nextPageToken"].clone();
        if token.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
    let failed =
        ok(&server, "deliveries", json!({"webhookId": id, "event": "pull_request.failed"})).await;
    assert_eq!(failed["deliveries"].as_array().map(Vec::len), Some(4));
}

#[actix_web::test]
async fn messages_are_replayed_under_their_ids() {
    let server = Server::new().await;
    let id = created(&server).await;
    let abort = Sent::Answered { status: 400, abort: true, retry_after: None, body: String::new() };
    server.hooks.answer([answered(200), abort, answered(410)]);
    for _ in 0..3 {
        happens(&server, "pull_request.merged").await;
    }
    send(&server).await;
    let first: Vec<_> = server.hooks.posted().into_iter().map(|it| it.1).collect();
    let replay = json!({"webhookId": id, "since": "2020-01-01T00:00:00Z"});
    call(&server, "replay", replay.clone()).await.problem(409, "webhook_off");
    let endpoint = ok(&server, "update", json!({"webhookId": id, "enabled": true})).await;
    assert_eq!(endpoint["enabled"], true);
    let one = json!({"webhookId": id, "messageId": first[0]});
    assert_eq!(ok(&server, "replay", one.clone()).await, json!({"messages": 1, "more": false}));
    call(&server, "replay", one).await.problem(409, "message_pending");
    let unknown = json!({"webhookId": id, "messageId": id});
    call(&server, "replay", unknown).await.problem(404, "message_not_found");
    let failed = json!({"webhookId": id, "failedSince": "2020-01-01T00:00:00Z"});
    assert_eq!(ok(&server, "replay", failed).await["messages"], 1, "the one that met a 410");
    assert_eq!(ok(&server, "replay", replay).await["messages"], 1, "the one that was aborted");
    send(&server).await;
    let mut again: Vec<_> = server.hooks.posted().into_iter().map(|it| it.1).collect();
    let mut first = first;
    again.sort_unstable();
    first.sort_unstable();
    assert_eq!(again, first);
}

#[actix_web::test]
async fn a_test_is_sent_as_any_other_message() {
    let server = Server::new().await;
    let id = created(&server).await;
    let body = json!({"webhookId": id, "event": "queue.state_changed"});
    let sent = ok(&server, "test", body).await;
    send(&server).await;
    let posted = server.hooks.posted();
    assert_eq!(json!(posted[0].1), sent["messageId"]);
    assert_eq!(posted[0].2, "{\"type\":\"queue.state_changed\"}");
    let page = ok(&server, "deliveries", json!({"webhookId": id, "state": "delivered"})).await;
    assert_eq!(page["deliveries"].as_array().map(Vec::len), Some(1));
}
