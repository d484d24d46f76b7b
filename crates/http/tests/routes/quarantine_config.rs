//! `POST /v1/metrics/getQuarantineConfig`: failures stay failures unless it is sure.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::flaky::TestKey;
use signalbox_domain::ids::{RepoId, RepoName};
use signalbox_domain::ports::Repository;
use signalbox_domain::token::Scope;

use crate::support::{Grant, Reply, Server, calc};

fn key(name: &str, variant: &str) -> TestKey {
    TestKey {
        org: "acme".into(),
        repo: "git.test/acme/calc".into(),
        parent: "s".into(),
        classname: "c".into(),
        file: "a.rs".into(),
        name: name.into(),
        variant: variant.into(),
        info: String::new(),
    }
}

fn test(name: &str, id: &str, message: &str) -> Value {
    json!({
        "name": name, "parentName": "s", "className": "c", "file": "a.rs", "id": id,
        "timestamp_millis": null, "is_quarantined": false, "failure_message": message,
        "variant": null
    })
}

fn question(repo: &str, org: &str, tests: &[Value]) -> Value {
    json!({
        "repo": {"host": "git.test", "owner": "acme", "name": repo}, "orgUrlSlug": org,
        "remoteUrls": ["x"], "testIdentifiers": tests
    })
}

async fn ask(server: &Server, token: &str, body: &Value) -> Reply {
    let request = TestRequest::post().uri("/v1/metrics/getQuarantineConfig");
    server.call(request.insert_header(("x-api-token", token)).set_json(body)).await
}

async fn with_repository() -> (Server, Repository) {
    let server = Server::without_queue().await;
    let org = server.stores.account.orgs.list().await.expect("organizations").remove(0);
    let new = Repository {
        id: RepoId(server.api.ids.new_id()),
        org: org.id,
        name: calc(),
        path: None,
        created_at: server.api.clock.now(),
    };
    let repository = server.stores.account.repos.register(&new, true).await.expect("registered");
    (server, repository)
}

#[actix_web::test]
async fn quarantined_tests_are_named_as_they_were_sent() {
    let (server, repository) = with_repository().await;
    server.results.quarantine(repository.org, repository.id, key("a", "").id());
    let tests =
        [test("a", "whatever was sent", "m"), test("b", &key("b", "").id().to_string(), "m")];
    let reply = ask(&server, &server.token, &question("calc", "acme", &tests)).await;
    assert_eq!(reply.json(), json!({"isDisabled": false, "testIds": ["whatever was sent"]}));
    let all = ask(&server, &server.token, &question("calc", "acme", &[])).await;
    assert_eq!(all.json()["testIds"], json!([key("a", "").id().to_string()]));
}

#[actix_web::test]
async fn quarantine_is_called_off_only_where_it_is_switched_off() {
    let (server, repository) = with_repository().await;
    server.results.disable(repository.org, repository.id);
    let on = json!({"isDisabled": false, "testIds": []});
    let off = ask(&server, &server.token, &question("calc", "acme", &[])).await;
    assert_eq!(off.json()["isDisabled"], true);
    let stranger = server.grant(Grant { org: "other", ..Grant::default() }).await;
    let elsewhere = RepoName::parse("git.test/acme/elsewhere").expect("a name");
    let limited = server.grant(Grant { repos: vec![elsewhere], ..Grant::default() }).await;
    for (token, repo, org) in [
        (&server.token, "unheard-of", "acme"),
        (&server.token, "calc", "other"),
        (&server.token, "calc", ""),
        (&server.token, "..", "acme"),
        (&stranger, "calc", "other"),
        (&limited, "calc", "acme"),
    ] {
        let reply = ask(&server, token, &question(repo, org, &[test("a", "1", "m")])).await;
        assert_eq!(reply.json(), on, "{repo} {org}");
    }
}

#[actix_web::test]
async fn authentication_comes_first() {
    let (server, _) = with_repository().await;
    ask(&server, "wrong", &json!({})).await.is_unauthorized();
    let scopes = vec![Scope::QueueRead];
    let token = server.grant(Grant { scopes, ..Grant::default() }).await;
    let reply = ask(&server, &token, &question("calc", "acme", &[])).await;
    reply.problem(403, "missing_scope");
    for body in ["", "{", "[]", "{\"repo\": 7}", "{\"repo\": {\"host\": \"h\"}} trailing"] {
        let request = TestRequest::post().uri("/v1/metrics/getQuarantineConfig");
        let request = request.insert_header(("x-api-token", server.token.as_str()));
        server.call(request.set_payload(body)).await.problem(400, "malformed_body");
    }
}

#[actix_web::test]
async fn ten_thousand_failures_with_full_messages_fit_into_one_question() {
    let (server, repository) = with_repository().await;
    server.results.quarantine(repository.org, repository.id, key("test 7", "").id());
    let message = "x".repeat(4_000);
    let tests: Vec<Value> =
        (0..10_000).map(|at| test(&format!("test {at}"), &at.to_string(), &message)).collect();
    let body = question("calc", "acme", &tests);
    assert!(body.to_string().len() > 40_000_000, "more than other routes take");
    let reply = ask(&server, &server.token, &body).await;
    assert_eq!(reply.json()["testIds"], json!(["7"]));
}

#[actix_web::test]
async fn fields_may_be_null_or_missing_and_others_are_passed_over() {
    let (server, repository) = with_repository().await;
    let bare = TestKey { org: "acme".into(), repo: calc().to_string(), ..TestKey::default() };
    let bare = TestKey { parent: "s".into(), name: "a".into(), ..bare };
    server.results.quarantine(repository.org, repository.id, bare.id());
    let null = json!({
        "name": "a", "parentName": "s", "className": null, "file": null, "id": "null",
        "timestamp_millis": null, "is_quarantined": null, "failure_message": null, "variant": null
    });
    let missing = json!({"name": "a", "parentName": "s", "id": "missing", "later": {"x": [[1]]}});
    let nothing = json!({});
    let mut body = question("calc", "acme", &[null, missing, nothing]);
    body["remoteUrls"] = Value::Null;
    body["later"] = json!({"deep": [[[{}]]]});
    let reply = ask(&server, &server.token, &body).await;
    assert_eq!(reply.json(), json!({"isDisabled": false, "testIds": ["null", "missing"]}));
    body["testIdentifiers"] = Value::Null;
    let all = ask(&server, &server.token, &body).await.json();
    assert_eq!(all["testIds"], json!([bare.id().to_string()]), "as the RSpec plug-in asks");
    body["orgUrlSlug"] = Value::Null;
    let none = ask(&server, &server.token, &body).await.json();
    assert_eq!(none, json!({"isDisabled": false, "testIds": []}));
}

#[actix_web::test]
async fn names_are_compared_as_they_are_kept() {
    let (server, repository) = with_repository().await;
    let long = "v".repeat(100);
    let kept = key("a", &long[..64]);
    server.results.quarantine(repository.org, repository.id, kept.id());
    let mut asked = test("  a\n", "1", "m");
    asked["variant"] = json!(long);
    asked["parentName"] = json!(" s ");
    let mut other = asked.clone();
    (other["id"], other["variant"]) = (json!("2"), json!("w".repeat(100)));
    let reply = ask(&server, &server.token, &question("calc", "acme", &[asked, other])).await;
    assert_eq!(reply.json()["testIds"], json!(["1"]));
}

#[actix_web::test]
async fn a_question_that_means_harm_is_refused_before_it_takes_memory() {
    let (server, _) = with_repository().await;
    let start = question("calc", "acme", &[]).to_string().replace("\"testIdentifiers\":[]}", "");
    assert!(start.ends_with(','), "{start}");
    for (what, end) in [
        (
            "more than 250000 tests",
            format!("\"testIdentifiers\":[{}{{}}]}}", "{},".repeat(250_000)),
        ),
        ("nested more than 64 deep", format!("\"x\":{}", "[".repeat(1_000_000))),
        ("more than 8388608 bytes", format!("\"x\":\"{}\"}}", "x".repeat((8 << 20) + 1))),
    ] {
        let request = TestRequest::post().uri("/v1/metrics/getQuarantineConfig");
        let request = request.insert_header(("x-api-token", server.token.as_str()));
        let reply = server.call(request.set_payload(format!("{start}{end}"))).await;
        assert!(reply.body.contains(what), "{what}: {}", reply.body);
        // Not one that uploaders try again.
        reply.problem(400, "malformed_body");
    }
}
