//! Nothing that a server prints holds a secret, at any level and in either format.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, System};

/// Where a secret may not be.
const PRINTED: [&str; 2] = ["server.log", "server.out"];

async fn nothing_that_is_printed_holds_a_secret(on: On, format: &str) {
    let environment = [("RUST_LOG", "debug"), ("SIGNALBOX_LOG__FORMAT", format)];
    let mut system = System::with_environment(on, "exit 0\n", 1, &environment).await;
    let mut secrets = vec![system.token().to_owned()];
    if let Some(rest) = system.database().strip_prefix("postgres://").map(ToOwned::to_owned) {
        let (user, place) = rest.split_once('@').expect("a user");
        let user = user.split(':').next().expect("a name");
        let password = "hunter2-and-a-half";
        let url = format!("postgres://{user}:{password}@{place}");
        secrets.push(password.to_owned());
        system.terminate();
        system.use_database(url);
        system.start().await;
    }
    let (id, old) = system.token_with(&["--org", "acme", "--name", "old"]);
    let rotated = system.run(&["token", "rotate", &id, "--overlap", "1h", "--json"]);
    let rotated: Value = serde_json::from_str(&rotated).expect("JSON");
    let new = rotated["token"].as_str().expect("a token").to_owned();
    let wrong = format!("{}0", &old[..old.len() - 1]);
    secrets.extend([old.clone(), new.clone(), wrong.clone()]);

    // Every way in which a token is sent, rightly and wrongly.
    for token in [&old, &new, &wrong] {
        let bearer = format!("Bearer {token}");
        for headers in [[("x-api-token", token.as_str())], [("authorization", bearer.as_str())]] {
            system.send(Method::GET, "/v1/audit", &headers, String::new()).await;
            system.send(Method::POST, "/v1/getQueue", &headers, "{nonsense".to_owned()).await;
        }
    }
    // A URL that is a permission in itself.
    let headers = [("x-api-token", old.as_str()), ("content-type", "application/json")];
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
        "clientVersion": "x", "remoteUrls": []
    });
    let path = "/v1/metrics/createBundleUpload";
    let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let announced = reply.json();
    let url = announced["url"].as_str().expect("an address");
    secrets.push(url.split_once("signature=").expect("a signature").1.to_owned());
    let put = url.split_once("/v1/").map(|(_, path)| format!("/v1/{path}")).expect("a path");
    system.send_bytes(Method::PUT, &put, &[], b"no archive".to_vec().into()).await;
    system.send_bytes(Method::PUT, &format!("{put}0"), &[], b"x".to_vec().into()).await;

    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    system.terminate();
    let mut seen = 0;
    for name in PRINTED {
        let text = std::fs::read_to_string(system.path(name)).expect("what it printed");
        seen += text.lines().count();
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{name} holds {secret}:\n{text}");
        }
        if name == "server.log" && format == "json" {
            for line in text.lines() {
                let line: Value = serde_json::from_str(line).expect("one object a line");
                assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
            }
        }
        let is_merge = |line: &&str| line.contains("MERGED") && line.contains("changed its state");
        let moved = text.lines().find(is_merge);
        if name == "server.log" {
            assert!(moved.is_some_and(|line| line.contains("effect")), "{moved:?}");
        }
    }
    assert!(seen > 20, "the server has logged {seen} lines");
}

#[tokio::test]
async fn nothing_that_is_printed_holds_a_secret_in_json() {
    nothing_that_is_printed_holds_a_secret(On::Postgres, "json").await;
}

#[tokio::test]
async fn no_output_contains_a_secret() {
    nothing_that_is_printed_holds_a_secret(On::Sqlite, "pretty").await;
}
