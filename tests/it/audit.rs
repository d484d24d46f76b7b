//! The audit log through commands and the API, and the rotation of tokens.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, System};

fn listed(system: &System, args: &[&str]) -> Vec<Value> {
    let list = system.run(&[&["audit", "list", "--json"], args].concat());
    list.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

async fn changes_are_listed_with_their_actors(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let headers = [
        ("x-api-token", system.token()),
        ("content-type", "application/json"),
        ("x-request-id", "release-7"),
    ];
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "targetBranch": "main",
        "state": "PAUSED", "reason": "release day"
    });
    let reply = system.send(Method::POST, "/v1/updateQueue", &headers, body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let all = listed(&system, &[]);
    let actions: Vec<&str> = all.iter().map(|it| it["action"].as_str().expect("a word")).collect();
    let wanted = [
        "queue.updated",
        "queue.created",
        "token.created",
        "repository.registered",
        "organization.created",
    ];
    assert_eq!(actions, wanted);
    assert_eq!(
        (&all[0]["requestId"], &all[0]["reason"]),
        (&json!("release-7"), &json!("release day"))
    );
    assert_eq!((&all[0]["actor"], &all[2]["actor"]), (&json!("token token"), &json!("operator")));
    let by_api: Value = serde_json::from_str(&system.get("/v1/audit?limit=1").await).expect("JSON");
    assert_eq!(by_api["records"][0]["id"], all[0]["id"]);
    assert_eq!(listed(&system, &["--action", "token.created", "--org", "acme"]).len(), 1);
    assert!(system.run(&["audit", "list"]).contains("state RUNNING -> PAUSED"));
}

#[tokio::test]
async fn changes_are_listed_with_their_actors_on_sqlite() {
    changes_are_listed_with_their_actors(On::Sqlite).await;
}

#[tokio::test]
async fn changes_are_listed_with_their_actors_on_postgres() {
    changes_are_listed_with_their_actors(On::Postgres).await;
}

async fn changes_of_webhooks_are_listed_without_their_secrets(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let hooks = |operation: &str| format!("webhooks/{operation}");
    let body = json!({ "url": "https://hooks.acme.test/", "events": ["pull_request.merged"] });
    let created = system.call(&hooks("create"), body).await;
    let id = created["webhook"]["id"].as_str().expect("an id").to_owned();
    let rotated = system.call(&hooks("rotate-secret"), json!({ "webhookId": id })).await;
    let update = async |change: Value| {
        let mut body = change;
        body["webhookId"] = json!(id);
        system.call(&hooks("update"), body).await;
    };
    system.call(&hooks("test"), json!({ "webhookId": id, "event": "queue.state_changed" })).await;
    update(json!({ "enabled": false })).await;
    update(json!({ "enabled": false })).await;
    update(json!({ "url": "https://hooks2.acme.test/", "enabled": true })).await;
    let none = json!({ "webhookId": id, "failedSince": "2020-01-01T00:00:00Z" });
    assert_eq!(system.call(&hooks("replay"), none).await["messages"], 0);
    system.call(&hooks("delete"), json!({ "webhookId": id })).await;
    let (all, object) = (listed(&system, &[]), format!("webhook {id}"));
    let own: Vec<&Value> = all.iter().filter(|it| it["object"] == object).collect();
    let told: Vec<(&str, Vec<&str>)> = own
        .iter()
        .rev()
        .map(|it| {
            assert_eq!(it["actor"], "token token");
            let changes = it["changes"].as_array().expect("changes").iter();
            let fields = changes.map(|it| it["field"].as_str().expect("a name")).collect();
            (it["action"].as_str().expect("a word"), fields)
        })
        .collect();
    let whole = vec!["description", "enabled", "events", "secrets", "url"];
    let wanted = [
        ("webhook.created", whole.clone()),
        ("webhook.secret_rotated", vec!["secrets"]),
        ("webhook.test_sent", vec!["event", "messageId"]),
        ("webhook.updated", vec!["enabled", "offReason"]),
        ("webhook.updated", vec!["enabled", "offReason", "url"]),
        ("webhook.deleted", whole),
    ];
    assert_eq!(told, wanted, "no change and no replay: no record");
    let printed = system.run(&["audit", "list", "--json"]);
    for secret in [&created["secret"], &rotated["secret"]] {
        let secret = secret.as_str().expect("text").trim_start_matches("whsec_");
        assert!(!printed.contains(secret), "a secret is in the audit log");
    }
}

#[tokio::test]
async fn changes_of_webhooks_are_listed_on_sqlite() {
    changes_of_webhooks_are_listed_without_their_secrets(On::Sqlite).await;
}

#[tokio::test]
async fn changes_of_webhooks_are_listed_on_postgres() {
    changes_of_webhooks_are_listed_without_their_secrets(On::Postgres).await;
}

#[tokio::test]
async fn a_rotated_token_works_beside_its_successor_until_the_overlap_ends() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let status = async |token: &str| {
        let headers = [("x-api-token", token)];
        system.send(Method::GET, "/v1/audit", &headers, String::new()).await.status
    };
    let (id, old) = system.token_with(&["--org", "acme", "--name", "deploy"]);
    let rotate = |overlap: &str, id: &str| -> (String, String) {
        let new = system.run(&["token", "rotate", id, "--overlap", overlap, "--json"]);
        let new: Value = serde_json::from_str(&new).expect("JSON");
        let part = |key: &str| new[key].as_str().expect("text").to_owned();
        (part("id"), part("token"))
    };
    let (second_id, second) = rotate("1h", &id);
    assert_eq!((status(&old).await, status(&second).await), (200, 200));
    let shown = system.run(&["token", "list"]);
    let line = shown.lines().find(|line| line.starts_with(&id)).expect("it is listed");
    assert!(line.contains(" valid ") && line.contains("  specification  20"), "{line}");
    let (_, third) = rotate("0m", &second_id);
    system
        .until("the second one is refused", async |_: &System| status(&second).await == 401)
        .await;
    assert_eq!((status(&old).await, status(&third).await), (200, 200));
    let records = listed(&system, &["--action", "token.rotated"]);
    assert_eq!(records.len(), 2);
    assert_eq!(records[1]["object"], format!("token {id}"));
    let fields: Vec<&str> = records[1]["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|it| it["field"].as_str().expect("a name"))
        .collect();
    assert_eq!(fields, ["replacedBy", "revokedAt"]);
    let printed = system.run(&["audit", "list", "--json"]);
    for secret in [&old, &second, &third] {
        assert!(!printed.contains(secret.as_str()), "a token's text is in the audit log");
    }
}
