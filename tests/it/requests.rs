//! One request id leads from the call to the webhook messages that it caused.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, System};
use crate::receiver::Receiver;

const REQUEST: &str = "from-the-release-script";
const CONFIG: &str = "[webhooks]\nallow = [\"127.0.0.1/32\"]\nallow_http = true\n";

/// The lines of the log that belong to the request, with the fields of their innermost span.
fn lines_of_it(system: &System) -> Vec<Value> {
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["span"]["request.id"] == REQUEST).collect()
}

async fn a_request_id_leads_to_the_messages_it_caused(on: On) {
    let environment = [("SIGNALBOX_LOG__FORMAT", "json")];
    let mut system = System::with_environment(on, "exit 0\n", 1, &environment).await;
    system.terminate();
    std::fs::write(system.path("signalbox.toml"), CONFIG).expect("written");
    system.start().await;
    let receiver = Receiver::new(false).await;
    system.call("webhooks/create", json!({ "url": receiver.url() })).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    let headers = [
        ("x-api-token", system.token()),
        ("content-type", "application/json"),
        ("x-request-id", REQUEST),
    ];
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "targetBranch": "main",
        "pr": {"number": pr}
    });
    let path = "/v1/submitPullRequest";
    let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    system.until_state(pr, "MERGED").await;
    let told = ["submitted", "queued", "testing", "merged"];
    let all = async |_: &System| receiver.taken().len() >= told.len();
    system.until("every message has come", all).await;
    system.terminate();

    let lines = lines_of_it(&system);
    let of_span = |name: &str| -> Vec<&Value> {
        lines.iter().filter(|line| line["span"]["name"] == name).collect()
    };
    let field = |line: &Value, name: &str| line["span"][name].as_str().unwrap_or("-").to_owned();
    let effects: BTreeSet<String> =
        of_span("effect").into_iter().map(|line| field(line, "effect.name")).collect();
    assert!(effects.contains("land"), "{effects:?}");
    let sent = of_span("webhook");
    let kinds: BTreeSet<String> = sent.iter().map(|line| field(line, "event.type")).collect();
    let wanted = told.map(|it| format!("pull_request.{it}"));
    assert_eq!(kinds, BTreeSet::from(wanted));
    let ids: BTreeSet<String> = sent.iter().map(|line| field(line, "message.id")).collect();
    assert_eq!(ids, receiver.taken().into_keys().collect(), "under the ids of the receiver");
    assert!(sent.iter().all(|line| line["fields"]["outcome"] == "delivered"), "{sent:#?}");
    assert!(receiver.bodies().keys().all(|body| !body.contains(REQUEST)), "it stays in the house");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_followed_to_the_messages_on_sqlite() {
    a_request_id_leads_to_the_messages_it_caused(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_followed_to_the_messages_on_postgres() {
    a_request_id_leads_to_the_messages_it_caused(On::Postgres).await;
}
