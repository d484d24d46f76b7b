//! `GET /v1/audit`.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::token::Scope;

use crate::support::{Grant, Server, calc};

const PATH: &str = "/v1/audit";

async fn read(server: &Server, token: &str, query: &str) -> Value {
    let uri = format!("{PATH}{query}");
    let request = TestRequest::get().uri(&uri).insert_header(("x-api-token", token.to_owned()));
    let reply = server.call(request).await;
    assert_eq!(reply.status, 200, "{query}: {reply:?}");
    serde_json::from_str(&reply.body).expect("JSON")
}

fn actions(page: &Value) -> Vec<&str> {
    let records = page["records"].as_array().expect("records");
    records.iter().map(|it| it["action"].as_str().expect("a word")).collect()
}

#[actix_web::test]
async fn a_change_is_listed_with_actor_action_before_and_after() {
    let server = Server::new().await;
    let pause = json!({"state": "PAUSED", "reason": "release day", "concurrency": 7});
    server.ok("updateQueue", pause).await;
    let page = read(&server, &server.token, "").await;
    assert_eq!(actions(&page), ["queue.updated", "queue.created"]);
    let record = &page["records"][0];
    assert_eq!(record["actor"]["name"], "ci");
    assert_eq!(record["object"], format!("queue main of {}", calc()));
    assert_eq!(
        (&record["reason"], &record["repo"]),
        (&json!("release day"), &json!(calc().to_string()))
    );
    let change = |field: &str| {
        let changes = record["changes"].as_array().expect("changes");
        let found = changes.iter().find(|it| it["field"] == field);
        found.map(|it| (it["before"].clone(), it["after"].clone()))
    };
    assert_eq!(change("state"), Some((json!("RUNNING"), json!("PAUSED"))));
    assert_eq!(change("concurrency"), Some((json!("2"), json!("7"))));
    assert_eq!(change("mode"), None, "unchanged fields are not listed");
    assert_eq!(page["nextCursor"], Value::Null);
}

#[actix_web::test]
async fn refused_requests_and_requests_without_changes_are_not_listed() {
    let server = Server::new().await;
    server.ok("updateQueue", json!({"concurrency": 2})).await;
    server.submitted("b").await;
    server.post("deleteQueue", json!({})).await.problem(409, "merge_queue_not_empty");
    assert_eq!(actions(&read(&server, &server.token, "").await), ["queue.created"]);
}

#[actix_web::test]
async fn pages_and_filters_leave_nothing_out() {
    let server = Server::new().await;
    for concurrency in 3..8 {
        server.ok("updateQueue", json!({"concurrency": concurrency})).await;
    }
    let (mut seen, mut query) = (0, "?limit=2".to_owned());
    loop {
        let page = read(&server, &server.token, &query).await;
        seen += actions(&page).len();
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, 6);
    for (query, found) in [
        ("?action=queue.created", 1),
        (&format!("?repo={}", calc()), 6),
        ("?since=2999-01-01T00:00:00Z", 0),
        ("?object=nothing", 0),
    ] {
        assert_eq!(actions(&read(&server, &server.token, query).await).len(), found, "{query}");
    }
    for (query, pointer) in [
        ("?action=nothing", "/action"),
        ("?token=x", "/token"),
        ("?repo=x", "/repo"),
        ("?since=yesterday", "/since"),
        ("?limit=101", "/limit"),
        ("?cursor=x", "/cursor"),
        ("?limit=1&limit=2", "/limit"),
    ] {
        assert_eq!(server.get(&format!("{PATH}{query}")).await.pointers(), [pointer], "{query}");
    }
}

#[actix_web::test]
async fn it_is_for_administrators_and_limited_tokens_see_their_repositories() {
    let server = Server::new().await;
    let reader = Grant { scopes: vec![Scope::QueueRead], ..Grant::default() };
    let token = server.grant(reader).await;
    let request = TestRequest::get().uri(PATH).insert_header(("x-api-token", token));
    server.call(request).await.problem(403, "missing_scope");
    let mut elsewhere = calc();
    elsewhere.name = "elsewhere".to_owned();
    let other = server.grant(Grant { org: "other", ..Grant::default() }).await;
    let limited = server.grant(Grant { repos: vec![elsewhere], ..Grant::default() }).await;
    for token in [&other, &limited] {
        assert_eq!(actions(&read(&server, token, "").await), [""; 0]);
    }
    let own = server.grant(Grant { repos: vec![calc()], ..Grant::default() }).await;
    assert_eq!(actions(&read(&server, &own, "").await), ["queue.created"]);
}
