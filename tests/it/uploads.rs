//! Results of tests come in: by the uploader's protocol, by the command line, and from checks.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{On, System};

const XML: &str = r#"<testsuite name="s"><testcase name="a" classname="c" file="a.rs" time="1">
    <flakyFailure message="once"/></testcase><testcase name="b" classname="c" file="a.rs" time="1">
    <failure message="m">t</failure></testcase></testsuite>"#;

fn bundle(id: &str) -> Vec<u8> {
    let meta = json!({
        "version": "1", "org": "acme", "bundle_upload_id": id, "file_sets": [],
        "repo": {"repo": {"host": "git.local", "owner": "acme", "name": "calc"},
            "repo_head_sha": "a".repeat(40), "repo_head_branch": "refs/heads/main"},
        "upload_time_epoch": 1_700_000_000
    });
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in [("meta.json", meta.to_string().as_str()), ("junit/0", XML)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(content.len()).expect("a length"));
        archive.append_data(&mut header, name, content.as_bytes()).expect("memory");
    }
    let archive = archive.into_inner().expect("memory");
    zstd::encode_all(&archive[..], 3).expect("memory")
}

async fn uploads(system: &System) -> Vec<Value> {
    let query = json!({"page_query": {"page_size": 100}});
    let page = system.call("flaky-tests/list-uploads", query).await;
    page["uploads"].as_array().expect("uploads").clone()
}

async fn until_read(system: &System, count: usize) -> Vec<Value> {
    let all_read = async |system: &System| {
        let uploads = uploads(system).await;
        uploads.len() == count && uploads.iter().all(|it| it["state"] == "read")
    };
    system.until("every upload is read", all_read).await;
    uploads(system).await
}

async fn a_bundle_survives_the_servers_death(on: On) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    let token = system.token().to_owned();
    let headers = [("x-api-token", token.as_str()), ("content-type", "application/json")];
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
        "clientVersion": "x", "remoteUrls": []
    });
    let path = "/v1/metrics/createBundleUpload";
    let reply = system.send(Method::POST, path, &headers, body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let announced = reply.json();
    let url = announced["url"].as_str().expect("an address");
    let (origin, path) = url.split_once("/v1/").expect("an absolute address");
    assert!(origin.starts_with("http://127.0.0.1:"), "{url}");
    let content = bundle(announced["id"].as_str().expect("an id"));
    let path = format!("/v1/{path}");
    let reply = system.send_bytes(Method::PUT, &path, &[], content.clone().into()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    system.kill();
    system.start().await;
    let read = until_read(&system, 1).await;
    assert_eq!((&read[0]["tests"], &read[0]["failed_tests"]), (&json!(2), &json!(1)));
    let again = system.send_bytes(Method::PUT, &path, &[], content.into()).await;
    assert_eq!(again.status, 200, "{}", again.text);
    assert_eq!(uploads(&system).await, read);
    let log = std::fs::read_to_string(system.path("server.log")).expect("a log");
    let secret = url.split_once("signature=").expect("a signature").1;
    assert!(!log.contains(secret), "the secret is not logged");
}

#[tokio::test]
async fn a_bundle_survives_the_servers_death_on_sqlite() {
    a_bundle_survives_the_servers_death(On::Sqlite).await;
}

#[tokio::test]
async fn a_bundle_survives_the_servers_death_on_postgres() {
    a_bundle_survives_the_servers_death(On::Postgres).await;
}

#[tokio::test]
async fn reports_come_from_the_command_line_and_are_sent_twice_without_harm() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    system.write(&[("good.xml", XML), ("bad.xml", "<testsuite>\n<testcase")]);
    let server = system.url();
    let upload = |file: &str, sha: &str| {
        let args = ["tests", "upload", "--repo", "git.local/acme/calc", "--branch", "main"];
        let mut command = system.command(&args);
        command.args(["--sha", sha, "--server", &server, "--job", "unit", "--json"]);
        let file = system.path("work").join(file);
        command.arg(file).env("SIGNALBOX_TOKEN", system.token());
        command.output().expect("it can be run")
    };
    let sha = "b".repeat(40);
    for _ in 0..2 {
        let done = upload("good.xml", &sha);
        assert!(done.status.success(), "{done:?}");
    }
    let read = until_read(&system, 1).await;
    assert_eq!((&read[0]["branch_class"], &read[0]["sha"]), (&json!("stable"), &json!(sha)));
    let refused = upload("good.xml", "nonsense");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("sha"), "{refused:?}");
    assert_eq!(upload("missing.xml", &sha).status.code(), Some(1));
    assert!(upload("bad.xml", &sha).status.success(), "it is read later");
    let failed = async |system: &System| {
        let uploads = uploads(system).await;
        uploads.iter().any(|it| it["state"] == "failed" && it["files"][0]["line"] == 2)
    };
    system.until("the bad file is listed with its line", failed).await;
}

#[tokio::test]
async fn reports_of_checks_are_uploads_of_the_merge_queue() {
    let script = "mkdir -p out\ncp good.xml out/junit.xml\n";
    let system = System::new(On::Sqlite, script, 1).await;
    let config = "[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\n\
                  reports = [\"out/*.xml\"]\n";
    // The reports of a check are declared on the target branch, never by a pull request.
    let files = [(".signalbox.toml", config), ("good.xml", XML)];
    let pr = system.pull_request("reports", &files);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    assert!(uploads(&system).await.is_empty());
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    let read = until_read(&system, 1).await;
    assert_eq!((&read[0]["source"], &read[0]["branch_class"]), (&json!("checks"), &json!("merge")));
    assert_eq!((&read[0]["pr_number"], &read[0]["runs"]), (&json!(pr), &json!(3)));
    assert_eq!(read[0]["files"][0]["name"], "out/junit.xml");
}
