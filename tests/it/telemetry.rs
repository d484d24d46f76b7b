//! Traces reach a collector, with the request's id from the call to the effect.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use reqwest::Method;
use serde_json::json;

use crate::harness::{On, System};

/// A collector that keeps its requests: the head and the body of each.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (told, heard) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let told = told.clone();
            std::thread::spawn(move || {
                let mut answers = connection.try_clone().expect("a connection");
                let mut lines = BufReader::new(connection);
                loop {
                    let (mut start, mut length) = (String::new(), 0);
                    loop {
                        let mut line = String::new();
                        if lines.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                            length = value.trim().parse().expect("a length");
                        }
                        if line == "\r\n" {
                            break;
                        }
                        start += &line;
                    }
                    let mut body = vec![0; length];
                    lines.read_exact(&mut body).expect("the body");
                    drop(told.send((start, body)));
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    answers.write_all(answer).expect("answered");
                }
            });
        }
    });
    (address, heard)
}

#[tokio::test]
async fn spans_of_a_request_and_of_what_follows_carry_its_id() {
    let (address, heard) = collector();
    let environment = [("SIGNALBOX_TELEMETRY__OTLP_ENDPOINT", address.as_str())];
    let mut system = System::with_environment(On::Sqlite, "exit 0\n", 1, &environment).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    let headers = [
        ("x-api-token", system.token()),
        ("content-type", "application/json"),
        ("x-request-id", "from-the-release-script"),
    ];
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "targetBranch": "main",
        "pr": {"number": pr}
    });
    let path = "/v1/submitPullRequest";
    let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    system.until_state(pr, "MERGED").await;
    let (code, _) = system.terminate();
    assert_eq!(code, Some(0));
    let sent: Vec<(String, Vec<u8>)> = heard.try_iter().collect();
    assert!(!sent.is_empty(), "the remaining spans were sent at the end");
    for (head, _) in &sent {
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        assert!(head.to_lowercase().contains("content-type: application/x-protobuf"), "{head}");
    }
    let all: Vec<u8> = sent.into_iter().flat_map(|(_, body)| body).collect();
    let count = |text: &str| all.windows(text.len()).filter(|it| *it == text.as_bytes()).count();
    assert!(count("signalbox") > 0 && count("request") > 0 && count("effect") > 0);
    assert!(count("from-the-release-script") >= 3, "the request and what followed from it");
    assert_eq!(count(system.token()), 0, "no token is sent");
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    let is_merge = |line: &&str| line.contains("MERGED") && line.contains("changed its state");
    let landed = log.lines().find(is_merge);
    assert!(landed.is_some_and(|line| line.contains("from-the-release-script")), "{log}");
}

#[tokio::test]
async fn a_collector_that_is_gone_stops_nothing() {
    let environment = [("SIGNALBOX_TELEMETRY__OTLP_ENDPOINT", "http://127.0.0.1:9")];
    let mut system = System::with_environment(On::Sqlite, "exit 0\n", 1, &environment).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    let (code, took) = system.terminate();
    assert_eq!(code, Some(0));
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}
