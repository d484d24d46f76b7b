//! Ten thousand failing tests in one upload, from the report to the reply with the quarantined
//! ones; and flaky tests on the command line.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_domain::flaky::TestKey;
use signalbox_domain::time::{Span, Timestamp};

use crate::harness::{On, System};

const FAILING: usize = 10_000;
/// So many pass that the upload does not count as an infrastructure failure.
const PASSING: usize = 3_000;

/// A report in which tests fail for good, or fail once and then pass.
fn report(for_good: bool) -> String {
    let failed = if for_good { "<failure message=\"m\">t</failure>" } else { "<flakyFailure/>" };
    let mut text = String::from("<testsuite name=\"s\">");
    for number in 0..FAILING + PASSING {
        let end = if number < FAILING { failed } else { "" };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "<testcase name=\"t{number}\" classname=\"c\" file=\"a.rs\" time=\"1\">{end}</testcase>"
        );
    }
    text + "</testsuite>"
}

async fn upload(system: &System, sha: &str, xml: String) {
    let path = format!(
        "/v1/flaky-tests/upload?repo=git.local/acme/calc&branch=main&sha={}",
        sha.repeat(40)
    );
    let headers = [("x-api-token", system.token()), ("content-type", "application/xml")];
    let reply = system.send(Method::POST, &path, &headers, xml).await;
    assert!(reply.status < 300, "{}", reply.text);
    let status = reply.json()["status_url"].as_str().expect("an address").to_owned();
    let read = async |system: &System| {
        let status: Value = serde_json::from_str(&system.get(&status).await).expect("JSON");
        assert_ne!(status["state"], "failed", "{status}");
        status["state"] == "read"
    };
    // A busy machine takes long for ten thousand failures without optimization.
    system.until_within(Duration::from_mins(3), "the upload is read", read).await;
}

/// All pages of a list: the ids, in order.
async fn pages(system: &System, operation: &str, mut body: Value, key: &str) -> Vec<String> {
    let mut ids = Vec::new();
    body["org_url_slug"] = json!("acme");
    body["page_query"] = json!({"page_size": 100, "page_token": ""});
    loop {
        let page = system.call(&format!("flaky-tests/{operation}"), body.clone()).await;
        let id = if key == "tests" { "id" } else { "test_case_id" };
        let tests = page[key].as_array().expect("tests").clone();
        ids.extend(tests.iter().map(|test| test[id].as_str().expect("an id").to_owned()));
        let next = page["page"]["next_page_token"].as_str().expect("a token").to_owned();
        if next.is_empty() {
            assert_eq!(page["page"]["total_rows"], json!(ids.len()));
            return ids;
        }
        body["page_query"]["page_token"] = json!(next);
    }
}

async fn ten_thousand_failing_tests_in_one_upload(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let enable = json!({"quarantineEnabled": true, "autoQuarantine": "flaky"});
    system.call("flaky-tests/update-settings", enable).await;
    upload(&system, "a", report(true)).await;
    let asked = json!({"page_query": {"page_size": 1}});
    let uploads = system.call("flaky-tests/list-uploads", asked).await;
    let at = uploads["uploads"][0]["created_at"].as_str().and_then(Timestamp::parse);
    let at = at.expect("a time");
    let (from, until) =
        (at.minus(Span::hours(24)).to_string(), at.plus(Span::hours(1)).to_string());
    let range = json!({"start_time": from, "end_time": until});
    let failing = pages(&system, "list-failing-tests", range, "tests").await;
    assert_eq!(failing.len(), FAILING);
    assert!(failing.is_sorted(), "in the order of their ids");
    upload(&system, "b", report(false)).await;
    let quarantined =
        pages(&system, "list-quarantined-tests", json!({}), "quarantined_tests").await;
    assert_eq!(quarantined, failing, "each failed and passed on one commit");
    // The uploader asks for them by their ids, and for others.
    let test = |id: &String| json!({"id": id, "name": "t", "parentName": "s", "className": "c", "file": "a.rs"});
    let mut asked: Vec<Value> = failing.iter().map(test).collect();
    asked.push(test(&uuid::Uuid::from_u128(1).to_string()));
    let question = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
        "remoteUrls": [], "testIdentifiers": asked
    });
    let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
    let path = "/v1/metrics/getQuarantineConfig";
    let reply = system.send(Method::POST, path, &headers, question.to_string()).await.json();
    assert_eq!(reply["isDisabled"], false);
    let ids = reply["testIds"].as_array().expect("ids").iter();
    let ids: BTreeSet<String> = ids.map(|id| id.as_str().expect("an id").to_owned()).collect();
    assert_eq!(ids, failing.into_iter().collect());
}

#[tokio::test]
async fn ten_thousand_failing_tests_in_one_upload_on_sqlite() {
    ten_thousand_failing_tests_in_one_upload(On::Sqlite).await;
}

#[tokio::test]
async fn ten_thousand_failing_tests_in_one_upload_on_postgres() {
    ten_thousand_failing_tests_in_one_upload(On::Postgres).await;
}

#[tokio::test]
async fn the_command_line_lists_flags_and_quarantines() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let xml = "<testsuite name=\"s\"><testcase name=\"adds\" classname=\"c\" file=\"a.rs\"/>\
               </testsuite>";
    upload(&system, "a", xml.to_owned()).await;
    let server = system.url();
    let tests = |args: &[&str]| {
        let place = ["--repo", "git.local/acme/calc", "--server", &server];
        let mut command = system.command(&[&["tests"], args, &place].concat());
        let done = command.env("SIGNALBOX_TOKEN", system.token()).output().expect("it can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let list = |which: &str| tests(&["list", "--which", which, "--org", "acme", "--json"]);
    let (code, listed, errors) = list("flaky");
    assert_eq!(code, Some(0), "{errors}");
    assert!(!listed.contains("adds"), "{listed}");
    let key = TestKey {
        org: "acme".into(),
        repo: "git.local/acme/calc".into(),
        parent: "s".into(),
        classname: "c".into(),
        file: "a.rs".into(),
        name: "adds".into(),
        ..TestKey::default()
    };
    let id = key.id().to_string();
    let (code, _, errors) = tests(&["flag", &id, "--reason", "fails on Mondays"]);
    assert_eq!(code, Some(0), "{errors}");
    let (_, listed, _) = list("flaky");
    assert!(listed.contains("adds") && listed.contains(&id), "{listed}");
    let (code, _, errors) = tests(&["flag", &id]);
    assert_eq!((code, errors.lines().count()), (Some(8), 1), "it is flagged already: {errors}");
    let enable = json!({"quarantineEnabled": true});
    system.call("flaky-tests/update-settings", enable).await;
    let (code, _, errors) = tests(&["quarantine", &id, "always", "--reason", "KAN-1"]);
    assert_eq!(code, Some(0), "{errors}");
    let (_, listed, _) = list("quarantined");
    assert!(listed.contains(&id), "{listed}");
    let (code, _, errors) = tests(&["quarantine", &id, "never"]);
    assert_eq!(code, Some(0), "{errors}");
    let (_, listed, _) = list("quarantined");
    assert!(!listed.contains(&id), "{listed}");
    let (code, _, errors) = tests(&["flag", "nonsense"]);
    assert_eq!((code, errors.contains("UUID")), (Some(2), true), "{errors}");
    let (code, _, _) = tests(&["quarantine", &id, "sometimes"]);
    assert_eq!(code, Some(2));
}
