//! `POST /v1/listQueues`.

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::ids::RepoName;
use signalbox_domain::token::{EnumCase, Scope};

use crate::support::{Grant, Reply, Server, calc};

const OPERATION: &str = "listQueues";

fn all() -> Value {
    json!({"repo": null})
}

/// The repositories' names and the branches.
fn places(reply: &Reply) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let reply = reply.json();
    let queues = reply["queues"].as_array().expect("queues");
    queues.iter().map(|it| (text(&it["repo"]["name"]), text(&it["targetBranch"]))).collect()
}

#[actix_web::test]
async fn queues_are_listed_with_their_state_and_numbers() {
    let server = Server::new().await;
    server.submitted("a").await;
    server.submitted("b").await;
    let token = server.grant(Grant::default()).await;
    let request = TestRequest::post().uri("/v1/listQueues").insert_header(("x-api-token", token));
    let reply = server.call(request.set_json(json!({}))).await.json();
    let expected = json!({"queues": [{
        "repo": {"host": "git.test", "owner": "acme", "name": "calc"}, "targetBranch": "main",
        "state": "RUNNING", "mode": "SINGLE", "pausedReason": null, "freeze": null,
        "enqueuedPullRequestsCount": 2, "testRunsCount": 1
    }]});
    assert_eq!(reply, expected);
    server.settle_but(&[signalbox_domain::queue::EffectClass::Checks]).await;
    assert_eq!(server.post(OPERATION, all()).await.json()["queues"][0]["testRunsCount"], json!(2));
    server.ok("updateQueue", json!({"state": "PAUSED", "reason": "release day"})).await;
    let lower = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let reply = server.post_as(&lower, OPERATION, all()).await.json();
    let queue = &reply["queues"][0];
    assert_eq!((&queue["state"], &queue["mode"]), (&json!("paused"), &json!("single")));
    assert_eq!(queue["pausedReason"], json!("release day"));
    server.ok("updateQueue", json!({"freezes": ["2020-01-01T00:00/..[UTC] audit"]})).await;
    let reply = server.post(OPERATION, all()).await.json();
    assert_eq!(reply["queues"][0]["freeze"], json!({"until": null, "reason": "audit"}));
}

#[actix_web::test]
async fn only_the_queues_of_the_token_are_listed() {
    let server = Server::new().await;
    server.host.add_repository(
        &RepoName::new("git.test", "acme", "abacus").expect("a name"),
        &[("README", "an abacus")],
    );
    let name = |name: &str| json!({"repo": {"host": "git.test", "owner": "acme", "name": name}});
    for (repo, branch) in [("abacus", "main"), ("calc", "old")] {
        let mut body = name(repo);
        body["targetBranch"] = json!(branch);
        server.ok("createQueue", body).await;
    }
    let place = |name: &str, branch: &str| (name.to_owned(), branch.to_owned());
    let three = [place("abacus", "main"), place("calc", "main"), place("calc", "old")];
    assert_eq!(places(&server.post(OPERATION, all()).await), three);
    assert_eq!(places(&server.post(OPERATION, name("abacus")).await), three[..1]);
    let limited = server.grant(Grant { repos: vec![calc()], ..Grant::default() }).await;
    assert_eq!(places(&server.post_as(&limited, OPERATION, all()).await), three[1..]);
    let hidden = server.post_as(&limited, OPERATION, name("abacus")).await;
    hidden.problem(404, "repository_not_found");
    server.post(OPERATION, name("nothing")).await.problem(404, "repository_not_found");
    let stranger = server.grant(Grant { org: "other", ..Grant::default() }).await;
    assert_eq!(places(&server.post_as(&stranger, OPERATION, all()).await), []);
    let tests = server.grant(Grant { scopes: vec![Scope::TestsRead], ..Grant::default() }).await;
    server.post_as(&tests, OPERATION, all()).await.problem(403, "missing_scope");
    let wrong = server.post(OPERATION, json!({"repo": {"host": "git.test"}})).await;
    assert_eq!(wrong.pointers(), ["/repo/owner", "/repo/name"]);
}
