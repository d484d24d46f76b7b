//! A new user imports the history of a repository, in all forms, and starts with judgements.

use std::process::Output;
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_domain::time::{Span, Timestamp};

use crate::harness::{On, System};

const REPO: &str = "git.local/acme/calc";

#[expect(clippy::disallowed_methods, reason = "the server under test has the clock of the machine")]
fn ago(days: u32) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let now = Timestamp::from_unix_micros(i64::try_from(now.as_micros()).expect("a time"));
    now.minus(Span::days(days))
}

/// A run of a test that passes and of one that may fail.
fn xml(days: u32, fails: bool) -> String {
    let failure = if fails { "<failure message=\"m\"/>" } else { "" };
    format!(
        "<testsuite name=\"s\" timestamp=\"{}\"><testcase name=\"stable\" time=\"1\"/>\
         <testcase name=\"shaky\" time=\"1\">{failure}</testcase></testsuite>",
        ago(days)
    )
}

fn line(days: u32, sha: &str, outcome: &str) -> String {
    let tests = json!([
        {"name": "stable", "suite": "s", "outcome": "passed"},
        {"name": "shaky", "suite": "s", "outcome": outcome, "duration_ms": 1.5}
    ]);
    let run = json!({"at": ago(days).to_string(), "sha": sha, "branch": "main", "job": "unit",
        "tests": tests});
    run.to_string()
}

fn bundle(days: u32, sha: &str, fails: bool) -> Vec<u8> {
    let made = ago(days).unix_micros() / 1_000_000;
    let meta = json!({
        "version": "1", "org": "acme", "bundle_upload_id": "x", "file_sets": [],
        "repo": {"repo": {"host": "git.local", "owner": "acme", "name": "calc"},
            "repo_head_sha": sha, "repo_head_branch": "refs/heads/main"},
        "upload_time_epoch": made
    });
    let mut archive = tar::Builder::new(Vec::new());
    let xml = xml(days, fails);
    for (name, content) in [("meta.json", meta.to_string().as_str()), ("junit/0", &xml)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(content.len()).expect("a length"));
        archive.append_data(&mut header, name, content.as_bytes()).expect("memory");
    }
    let archive = archive.into_inner().expect("memory");
    zstd::encode_all(&archive[..], 3).expect("memory")
}

struct History<'a>(&'a System);

impl History<'_> {
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let file = self.0.path("history").join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, content).expect("written");
    }

    fn import(&self, args: &[&str]) -> Output {
        let server = self.0.url();
        let mut command = self.0.command(&["tests", "import", "--repo", REPO, "--json"]);
        command.args(["--layout", "{branch}/{sha}/{job}.xml", "--server", &server]);
        command.args(args).arg(self.0.path("history"));
        command.env("SIGNALBOX_TOKEN", self.0.token()).output().expect("it can be run")
    }

    fn summary(&self, args: &[&str]) -> Value {
        let done = self.import(args);
        assert!(done.status.success(), "{done:?}");
        serde_json::from_slice(&done.stdout).expect("JSON")
    }
}

async fn events(system: &System) -> Vec<String> {
    let headers = [("x-api-token", system.token())];
    let path = "/v1/events?limit=100";
    let reply = system.send(Method::GET, path, &headers, String::new()).await.json();
    let events = reply["events"].as_array().expect("events");
    let kinds = events.iter().map(|it| it["type"].as_str().expect("a name").to_owned());
    kinds.filter(|kind| kind.contains("test_")).collect()
}

async fn a_history_is_imported(on: On) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    let [first, second, third] = ["a", "b", "c"].map(|digit| digit.repeat(40));
    {
        let history = History(&system);
        // Fails and passes on one commit, in three forms; the last time was yesterday.
        history.write(&format!("main/{first}/unit.xml"), xml(30, true));
        history.write(&format!("main/{first}/again.xml"), xml(29, false));
        history.write("bundles/1.tar.zst", bundle(20, &second, true));
        history.write("bundles/2.tar.zst", bundle(19, &second, false));
        let lines =
            [line(1, &third, "passed"), line(2, &third, "failed"), line(60, &first, "failed")];
        history.write("ci.ndjson", lines.join("\n"));
        let dry = history.summary(&["--dry-run"]);
        assert_eq!((&dry["files"], &dry["runs"], &dry["tests"]), (&5.into(), &7.into(), &2.into()));
        assert_eq!(dry["imported"], 0);
    }
    assert!(events(&system).await.is_empty(), "a dry run sends nothing");

    // What came before an interruption is known afterwards.
    let headers = [("x-api-token", system.token()), ("content-type", "application/x-ndjson")];
    let path = format!("/v1/flaky-tests/import?repo={REPO}");
    let file = std::fs::read_to_string(system.path("history/ci.ndjson")).expect("a file");
    let earlier = file.lines().nth(1).expect("a line").to_owned();
    let reply = system.send(Method::POST, &path, &headers, earlier).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    system.kill();
    let stopped = History(&system).import(&[]);
    assert_eq!(stopped.status.code(), Some(5), "{stopped:?}");
    let words = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(words.contains("0 of 7 runs were sent: repeat the command to continue"), "{words}");
    system.start().await;

    let done = History(&system).summary(&[]);
    assert_eq!((&done["imported"], &done["known"]), (&5.into(), &1.into()), "{done}");
    assert_eq!(done["refused"]["too_old"]["count"], 1, "{done}");
    assert_eq!((&done["flaky"], &done["broken"]), (&1.into(), &0.into()), "{done}");
    assert_eq!(events(&system).await, ["test_import.finished"]);
    let query = json!({"repo": {"host": "git.local", "owner": "acme", "name": "calc"},
        "org_url_slug": "acme", "status": "FLAKY", "page_query": {"page_size": 10}});
    let flaky = system.call("flaky-tests/list-unhealthy-tests", query.clone()).await;
    assert_eq!(flaky["tests"][0]["name"], "shaky", "{flaky}");

    let again = History(&system).summary(&[]);
    assert_eq!((&again["imported"], &again["known"]), (&0.into(), &6.into()), "{again}");
    assert_eq!(system.call("flaky-tests/list-unhealthy-tests", query).await, flaky);
    assert_eq!(events(&system).await, ["test_import.finished"], "nothing is new");
}

#[tokio::test]
async fn a_history_is_imported_on_sqlite() {
    a_history_is_imported(On::Sqlite).await;
}

#[tokio::test]
async fn a_history_is_imported_on_postgres() {
    a_history_is_imported(On::Postgres).await;
}

#[tokio::test]
async fn malformed_files_are_named_with_line_and_rule_and_nothing_is_sent() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let history = History(&system);
    history.write("main/aaaa/unit.xml", xml(3, false));
    history.write(&format!("main/{}/unit.xml", "a".repeat(40)), "<testsuite>\n<testcase");
    history.write("ci.ndjson", format!("{}\n{{\"at\": 7}}\n", line(2, &"b".repeat(40), "passed")));
    history.write("elsewhere.junit", xml(3, false));
    let refused = history.import(&[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    for expected in [
        "nothing was imported: 4 problems in the files above",
        "ci.ndjson:2: column 8: invalid type: integer `7`",
        "elsewhere.junit: the path does not match the layout \"{branch}/{sha}/{job}.xml\"",
        "aaaa/unit.xml: invalid sha",
        "unit.xml:2:10: the file ends inside <testsuite>\n",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let query = json!({"page_query": {"page_size": 100}});
    let page = system.call("flaky-tests/list-uploads", query).await;
    assert_eq!(page["uploads"], json!([]));
}
