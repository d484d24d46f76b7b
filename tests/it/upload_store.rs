//! Several servers on one database, and one of them is lost: its uploads are read by another.

use reqwest::Method;
use serde_json::Value;
use signalbox_testkit::s3_double::{ACCESS_KEY, S3Double};
use tempfile::TempDir;

use crate::harness::{On, System};

const PATH: &str = "/v1/flaky-tests/upload?repo=github.com/acme/shop&branch=main";

/// A report that needs several parts: its comment is longer than two of them.
fn report() -> String {
    let filling = "x".repeat(1_000);
    let comments = format!("<!--{filling}-->\n").repeat(12_000);
    format!(
        "<testsuite name=\"s\">{comments}<testcase name=\"a\"/><testcase name=\"b\"/></testsuite>"
    )
}

/// Sends a report; returns the URL of its state.
async fn sent(system: &System, job: usize, report: &str) -> String {
    let headers = [("x-api-token", system.token()), ("content-type", "application/xml")];
    let path = format!("{PATH}&job={job}");
    let reply = system.send(Method::POST, &path, &headers, report.to_owned()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["status_url"].as_str().expect("an address").to_owned()
}

async fn is_read(system: &System, address: &str) {
    let read = async |system: &System| {
        let upload: Value = serde_json::from_str(&system.get(address).await).expect("JSON");
        assert_ne!(upload["state"], "failed", "{upload}");
        upload["state"] == "read" && upload["runs"] == 2
    };
    let patience = std::time::Duration::from_mins(2);
    system.until_within(patience, "another server has read the upload", read).await;
}

fn statuses(system: &System, name: &str) -> (String, String) {
    let done = system.command(&["doctor", "--json"]).output().expect("run");
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|it| it["name"] == name).expect("the check");
    let text = |key: &str| found[key].as_str().expect("text").to_owned();
    (text("status"), text("detail"))
}

#[tokio::test]
async fn an_upload_in_a_bucket_outlives_the_server_that_took_it() {
    let bucket = S3Double::start();
    let environment = [
        ("SIGNALBOX_UPLOADS__STORE", "s3://uploads/box"),
        ("SIGNALBOX_UPLOADS__ENDPOINT", &bucket.url),
        ("SIGNALBOX_UPLOADS__REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    let mut first = System::with_environment(On::Postgres, "exit 0\n", 1, &environment).await;
    assert_eq!(statuses(&first, "uploads").0, "ok");
    assert!(bucket.keys().is_empty(), "the doctor cleans up: {:?}", bucket.keys());
    let before = bucket.reads();
    // The first server gets no byte back before it dies, so that only the second can have read.
    bucket.hold_reads(true);
    let large = sent(&first, 1, &report()).await;
    let small =
        sent(&first, 2, "<testsuite><testcase name=\"a\"/><testcase name=\"b\"/></testsuite>");
    let small = small.await;
    assert!(bucket.keys().iter().all(|key| key.starts_with("box/")), "{:?}", bucket.keys());
    assert_eq!((bucket.keys().len(), bucket.multipart()), (2, (1, 0)));
    first.until("the first server is about to read", async |_| bucket.reads() > before).await;
    first.kill();
    let second = first.another_server().await;
    bucket.hold_reads(false);
    is_read(&second, &large).await;
    is_read(&second, &small).await;
    assert_eq!(bucket.refused(), 0, "every request was signed");
    assert!(!first.path("data/uploads").join("box").exists());
}

#[tokio::test]
async fn an_upload_in_a_shared_folder_outlives_the_server_that_took_it() {
    let folder = TempDir::new().expect("a folder");
    let store = format!("file://{}", folder.path().display());
    let environment = [("SIGNALBOX_UPLOADS__STORE", store.as_str())];
    let mut first = System::with_environment(On::Postgres, "exit 0\n", 1, &environment).await;
    assert_eq!(statuses(&first, "uploads").0, "ok");
    let report = report();
    let mut addresses = Vec::new();
    for job in 0..4 {
        addresses.push(sent(&first, job, &report).await);
    }
    first.kill();
    std::fs::remove_dir_all(first.path("data/checks")).unwrap_or_default();
    let second = first.another_server().await;
    for address in addresses {
        is_read(&second, &address).await;
    }
}

#[tokio::test]
async fn a_local_folder_is_a_warning_with_a_shared_database() {
    let alone = System::new(On::Sqlite, "exit 0\n", 1).await;
    assert_eq!(statuses(&alone, "uploads").0, "ok");
    let system = System::new(On::Postgres, "exit 0\n", 1).await;
    let (status, words) = statuses(&system, "uploads");
    assert!(status == "warn" && words.contains("uploads.store"), "{status} {words}");
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    assert!(log.contains("uploads.store"), "{log}");
}

/// Secrets that one server sealed could not be opened by the other.
#[tokio::test]
async fn a_server_with_another_webhook_key_sends_no_webhooks() {
    let mut system = System::new(On::Postgres, "exit 0\n", 1).await;
    let fresh = TempDir::new().expect("a folder");
    let warned = async |words: &str| {
        let path = fresh.path().join("log");
        let log = std::fs::File::create(&path).expect("a log");
        let mut command = system.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut server = command.current_dir(fresh.path()).stderr(log).spawn().expect("run");
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        system.until(words, async |_: &System| read().contains(words)).await;
        server.kill().and_then(|()| server.wait()).expect("ended");
        read()
    };
    let words = warned("webhooks.key has no key").await;
    assert!(words.contains("copy the key file"), "{words}");
    assert!(!fresh.path().join("data/webhooks.key").exists(), "and none is made");
    std::fs::create_dir_all(fresh.path().join("data")).expect("made");
    let other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    std::fs::write(fresh.path().join("data/webhooks.key"), other).expect("written");
    let words = warned("has the key").await;
    assert!(words.contains("forget-key"), "{words}");
    // A new first line above the known one is a change of the key.
    system.kill();
    let keys = system.path("data/webhooks.key");
    let known = std::fs::read_to_string(&keys).expect("a key");
    std::fs::write(&keys, format!("{other}{known}")).expect("written");
    let before = std::fs::read_to_string(system.path("server.log")).expect("a log").len();
    system.start().await;
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    assert!(!log[before..].contains("webhooks are off"), "{log}");
    system.kill();
    // Now the other server's key counts.
    let printed = system.run(&["webhooks", "forget-key"]);
    assert!(printed.contains("forgot the key"), "{printed}");
}
