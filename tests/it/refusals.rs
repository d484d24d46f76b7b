//! Refused requests: what the log, the metrics and the audit log have about them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, System};
use crate::strangers::damaged;

/// A refused request is logged with its client and its reason, counted, and, when its token was
/// valid once, audited.
async fn refusals_are_reported(on: On) {
    let listen = format!("127.0.0.1:{}", signalbox_tests::free_port());
    let environment =
        [("SIGNALBOX_LOG__FORMAT", "json"), ("SIGNALBOX_SERVER__METRICS_LISTEN", listen.as_str())];
    let mut system = System::with_environment(on, "exit 0\n", 1, &environment).await;
    system.terminate();
    let config = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n";
    std::fs::write(system.path("signalbox.toml"), config).expect("written");
    system.start().await;
    let (id, token) = system.token_with(&["--org", "acme", "--name", "old"]);
    system.run(&["token", "revoke", &id]);
    let wrong = damaged(&token);
    let call = async |token: &str| {
        let headers = [("x-api-token", token), ("x-forwarded-for", "198.51.100.9, 203.0.113.7")];
        system.send(Method::GET, "/v1/audit", &headers, String::new()).await.status
    };
    for token in [&token, &token, &wrong] {
        assert_eq!(call(token).await, 401);
    }
    let lines = |message: &str| -> Vec<Value> {
        let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let fields = lines.map(|line| line["fields"].clone());
        fields
            .filter(|it| it["message"] == message && it["client.address"] == "203.0.113.7")
            .collect()
    };
    let refused = lines("answered a request");
    let refused = refused.last().expect("a line");
    assert_eq!((&refused["status"], &refused["reason"]), (&json!(401), &json!("unauthorized")));
    assert_eq!(refused["refusals"], 3, "{refused}");
    let reasons: Vec<Value> =
        lines("refused a token").iter().map(|line| line["reason"].clone()).collect();
    assert_eq!(reasons, ["revoked", "revoked", "malformed"]);
    // A valid token without the right, in the API and on a page.
    let (_, limited) =
        system.token_with(&["--org", "acme", "--name", "ci", "--scope", "tests:upload"]);
    assert_eq!(call(&limited).await, 403);
    let refused = lines("answered a request");
    let refused = refused.last().expect("a line");
    assert_eq!((&refused["status"], &refused["reason"]), (&json!(403), &json!("missing_scope")));
    let here = system.url();
    let headers = [
        ("origin", here.as_str()),
        ("x-forwarded-for", "203.0.113.7"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let body = format!("token={wrong}&next=/");
    assert_eq!(system.send(Method::POST, "/sign-in", &headers, body).await.status, 401);
    let refused = lines("answered a request");
    let refused = refused.last().expect("a line");
    assert_eq!((&refused["status"], &refused["reason"]), (&json!(401), &json!("unauthorized")));
    let page = reqwest::get(format!("http://{listen}/metrics")).await.expect("a reply");
    let page = page.text().await.expect("a page");
    assert!(page.contains("signalbox_tokens_refused_total{reason=\"revoked\"} 2"), "{page}");
    let audit: Value =
        serde_json::from_str(&system.get("/v1/audit?action=token.refused").await).expect("JSON");
    let records = audit["records"].as_array().expect("records");
    assert_eq!(records.len(), 1, "one an hour: {audit}");
    assert_eq!(records[0]["reason"], "revoked token, used from 203.0.113.7");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_reported_on_sqlite() {
    refusals_are_reported(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_reported_on_postgres() {
    refusals_are_reported(On::Postgres).await;
}
