//! No operation shows anything of another organization or of repositories outside of a token, or changes
//! anything there, on each database. The stores in memory have the same test with the reply of each
//! operation in `crates/http`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, Reply, System};

/// What is in names, titles and results of the organization, and in no request of others.
const SECRET: &str = "nightingale";

/// An operation of the description, with a request for the repository of the organization.
struct Operation {
    id: String,
    method: Method,
    path: String,
    body: Option<Value>,
}

async fn operations(system: &System) -> Vec<Operation> {
    let document: Value =
        serde_json::from_str(&system.get("/v1/openapi.json").await).expect("JSON");
    let repo = json!({ "host": "git.local", "owner": "acme", "name": "calc" });
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            // The event stream does not end. What needs no token is listed in `crates/http`.
            let id = operation["operationId"].as_str().expect("a name");
            if !operation["security"].is_array() || id == "streamEvents" {
                continue;
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let body = schema.as_str().map(|name| {
                let mut body = document.pointer(&name[1..]).expect("a schema")["example"].clone();
                body["repo"] = repo.clone();
                body
            });
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let query: Vec<String> = parameters
                .filter(|it| it["in"] == "query" && it["required"] == true)
                .map(|it| match it["name"].as_str().expect("a name") {
                    "targetBranch" => "targetBranch=main".to_owned(),
                    name => format!("{name}=git.local/acme/calc"),
                })
                .collect();
            let any = "00000000-0000-0000-0000-000000000001";
            let path = ["{run}", "{upload}", "{name}"]
                .iter()
                .fold(path.clone(), |path, part| path.replace(part, any));
            found.push(Operation {
                id: id.to_owned(),
                method: method.to_uppercase().parse().expect("a method"),
                path: format!("{path}?{}", query.join("&")),
                body,
            });
        }
    }
    assert!(found.len() > 40, "{}", found.len());
    found
}

impl Operation {
    async fn call(&self, system: &System, token: Option<&str>) -> Reply {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(token.map(|token| ("x-api-token", token)));
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        system.send(self.method.clone(), &self.path, &headers, body).await
    }
}

/// What the organization has.
async fn state(system: &System) -> Vec<Value> {
    let page = json!({ "page_query": { "page_size": 100 } });
    let mut seen = Vec::new();
    for (operation, body) in [
        ("getQueue", json!({})),
        ("flaky-tests/list-monitors", json!({})),
        ("flaky-tests/get-settings", json!({})),
        ("flaky-tests/list-uploads", page.clone()),
        ("webhooks/list", json!({})),
    ] {
        seen.push(system.call(operation, body).await);
    }
    seen
}

async fn others_see_and_change_nothing(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    system.call("updateQueue", json!({ "state": "PAUSED" })).await;
    let pr = system.pull_request(SECRET, &[("file.txt", "new\n")]);
    system.submit(pr).await;
    let report =
        format!("<testsuite name=\"s\"><testcase name=\"{SECRET}\" classname=\"c\"/></testsuite>");
    let path = "/v1/flaky-tests/upload?repo=git.local/acme/calc&branch=main&job=unit&sha="
        .to_owned()
        + &"a".repeat(40);
    let headers = [("x-api-token", system.token()), ("content-type", "application/xml")];
    let sent = system.send(Method::POST, &path, &headers, report).await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    let read = async |system: &System| {
        let page = json!({ "page_query": { "page_size": 100 } });
        system.call("flaky-tests/list-uploads", page).await["uploads"][0]["state"] == "read"
    };
    system.until("the report is read", read).await;

    system.run(&["org", "create", "other"]);
    let (_, foreign) = system.token_with(&["--org", "other"]);
    let elsewhere = ["--org", "acme", "--repo", "git.local/acme/elsewhere"];
    let (_, limited) = system.token_with(&elsewhere);
    let before = state(&system).await;
    assert!(json!(before).to_string().contains(SECRET), "{before:?}");
    for operation in operations(&system).await {
        let bare = operation.call(&system, None).await;
        assert_eq!(bare.status, 401, "{}: {}", operation.id, bare.text);
        for token in [&foreign, &limited] {
            let reply = operation.call(&system, Some(token)).await;
            assert!(reply.status < 500, "{}: {}", operation.id, reply.text);
            assert!(!reply.text.contains(SECRET), "{}: {}", operation.id, reply.text);
        }
    }
    assert_eq!(state(&system).await, before);
}

#[tokio::test]
async fn others_see_and_change_nothing_on_sqlite() {
    others_see_and_change_nothing(On::Sqlite).await;
}

#[tokio::test]
async fn others_see_and_change_nothing_on_postgres() {
    others_see_and_change_nothing(On::Postgres).await;
}
