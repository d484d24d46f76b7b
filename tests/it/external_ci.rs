//! External checks: an external CI, here the scripts of the documentation, tests the commits and
//! reports the results. The server runs nothing itself, and has no sandbox.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{On, Reply, System};
use crate::receiver::Receiver;

const CHECK: &str = "! grep -q bad *.txt\n";
const EXTERNAL: &str = "[[checks]]\nname = \"test\"\nexternal = true\n";
const WEBHOOKS: &str = "[webhooks]\nallow = [\"127.0.0.1/32\"]\nallow_http = true\n";
const KIND: &str = "test_run.checks_requested";
const REPOSITORY: &str = "git.local/acme/calc";

/// A folder for `PATH` with git, and without bubblewrap.
fn programs() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let path = std::env::var_os("PATH").expect("a path");
    for program in ["git", "sh"] {
        let found = std::env::split_paths(&path).map(|it| it.join(program)).find(|it| it.exists());
        symlink(found.expect("the program"), folder.path().join(program)).expect("a link");
    }
    folder
}

/// The scripts of the documentation.
fn script(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    root.join("docs/how-to/external-ci").join(name)
}

/// A server without a sandbox, whose repository has an external check, and a machine of a CI.
struct Ci {
    system: System,
    /// A token that may only report checks of the repository.
    token: String,
    _programs: TempDir,
}

impl Ci {
    async fn new(on: On, backend: &str) -> Self {
        let programs = programs();
        let path = programs.path().display().to_string();
        let environment = [
            ("SIGNALBOX_SANDBOX__BACKEND", backend),
            ("SIGNALBOX_SANDBOX__UNSAFE_LOCAL", "false"),
            ("PATH", path.as_str()),
        ];
        let mut system = System::with_environment(on, CHECK, 2, &environment).await;
        system.write(&[(".signalbox.toml", EXTERNAL)]);
        system.commit("an external CI runs the check");
        system.push("main");
        system.terminate();
        std::fs::write(system.path("signalbox.toml"), WEBHOOKS).expect("written");
        system.start().await;
        let scopes = ["--org", "acme", "--scope", "checks:report", "--repo", REPOSITORY];
        let token = system.token_with(&scopes).1;
        let runner = "#!/bin/sh\nexec sh check.sh\n";
        std::fs::write(system.path("run-check"), runner).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(system.path("run-check"), mode).expect("executable");
        Self { system, token, _programs: programs }
    }

    /// A command on the machine of the CI.
    fn command(&self, program: &Path) -> Command {
        let log = File::options().create(true).append(true).open(self.system.path("ci.log"));
        let log = log.expect("a file");
        let mut command = Command::new(program);
        command
            .env("SIGNALBOX_URL", self.system.url())
            .env("SIGNALBOX_TOKEN", &self.token)
            .env("REMOTE", self.system.path("bare.git"))
            .env("RUN_CHECK", self.system.path("run-check"))
            .env("BUILD_URL", "https://ci.example/builds/7")
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        command
    }

    /// What a CI does that an event has started.
    fn build(&self, event: &str) {
        let mut build = self.command(&script("test-candidate.sh"));
        let mut build = build.stdin(Stdio::piped()).spawn().expect("a build");
        build.stdin.take().expect("its input").write_all(event.as_bytes()).expect("written");
        let status = build.wait().expect("ended");
        let log = std::fs::read_to_string(self.system.path("ci.log")).unwrap_or_default();
        assert!(status.success(), "{status}: {event}\n{log}");
    }

    /// A pull request that passes, and one that fails on its own.
    async fn submitted(&self) -> (u64, u64) {
        let good = self.system.pull_request("good", &[("good.txt", "good\n")]);
        let bad = self.system.pull_request("bad", &[("bad.txt", "bad\n")]);
        self.system.submit(good).await;
        self.system.submit(bad).await;
        (good, bad)
    }

    /// Sends a report with a token.
    async fn report(&self, token: &str, body: Value) -> Reply {
        let headers = [("x-api-token", token), ("content-type", "application/json")];
        let path = "/v1/reportCheckResult";
        self.system.send(reqwest::Method::POST, path, &headers, body.to_string()).await
    }
}

/// The report of a conclusion about the test run of an event.
fn report(event: &Value, check: &str, conclusion: &str) -> Value {
    json!({
        "repo": event["repository"], "targetBranch": event["target_branch"],
        "testRunId": event["test_run_id"], "sha": event["test_branch_sha"],
        "check": check, "status": "COMPLETED", "conclusion": conclusion,
    })
}

/// A webhook starts a build for each test run, until both pull requests have ended.
async fn webhooks_start_builds(on: On) {
    let ci = Ci::new(on, "auto").await;
    let system = &ci.system;
    let receiver = Receiver::new(false).await;
    let body = json!({ "url": receiver.url(), "events": [KIND] });
    let created = system.call("webhooks/create", body).await;
    receiver.knows(&[created["secret"].as_str().expect("a secret")]);
    let (good, bad) = ci.submitted().await;
    let mut built = BTreeSet::new();
    for (pr, end) in [(good, "MERGED"), (bad, "FAILED")] {
        while system.state(pr).await != end {
            let is_new = |body: &String| !built.contains(body);
            let fresh: Vec<String> = receiver.bodies().into_keys().filter(is_new).collect();
            for event in &fresh {
                ci.build(event);
            }
            if fresh.is_empty() {
                let count = receiver.bodies().len();
                let what = format!("#{pr} is {end}, or another build is requested");
                let has_news = async |system: &System| {
                    receiver.bodies().len() > count || system.state(pr).await == end
                };
                system.until(&what, has_news).await;
            }
            built.extend(fresh);
        }
    }
    assert_eq!(receiver.complaints(), Vec::<String>::new());
    assert_eq!(system.on_main("good.txt"), "good");
    assert!(!system.history().iter().any(|it| it.contains("change bad")), "{:?}", system.history());
    reports_that_come_too_late(&ci, &built).await;
    assert_eq!(system.state(good).await, "MERGED");
    assert_eq!(system.state(bad).await, "FAILED");
}

/// Reports about ended runs, and reports with other tokens, change nothing.
async fn reports_that_come_too_late(ci: &Ci, built: &BTreeSet<String>) {
    let events: Vec<Value> =
        built.iter().map(|it| serde_json::from_str(it).expect("JSON")).collect();
    let only_good = |event: &&Value| event["pr_numbers"] == json!([1]);
    let event = events.iter().find(only_good).expect("the event of the first pull request");
    let details = json!({ "testRunId": event["test_run_id"] });
    let run = ci.system.call("getMergeQueueTestingDetails", details).await;
    let check = &run["checkSuites"][0]["checkRuns"][0];
    assert_eq!(check["name"], "test", "{run}");
    assert_eq!(check["conclusion"], "SUCCESS", "{run}");
    assert_eq!(check["url"], "https://ci.example/builds/7", "{run}");
    // The build runs again, as after a repeated delivery.
    ci.build(&event.to_string());
    assert_eq!(ci.report(&ci.token, report(event, "test", "SUCCESS")).await.status, 200);
    for (check, conclusion, code) in
        [("test", "FAILURE", "check_completed"), ("deploy", "FAILURE", "check_not_external")]
    {
        let reply = ci.report(&ci.token, report(event, check, conclusion)).await;
        assert_eq!((reply.status, reply.code().as_str()), (409, code), "{}", reply.text);
    }
    let other = ["--org", "other", "--scope", "all"];
    let reply = ci.report(&ci.system.token_with(&other).1, report(event, "test", "FAILURE")).await;
    assert_eq!(reply.status, 404, "{}", reply.text);
    let reader = ["--org", "acme", "--scope", "queue:read,queue:submit,tests:upload"];
    let reply = ci.report(&ci.system.token_with(&reader).1, report(event, "test", "FAILURE")).await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "missing_scope"));
    let read = json!({ "repo": event["repository"], "targetBranch": "main" }).to_string();
    let headers = [("x-api-token", ci.token.as_str()), ("content-type", "application/json")];
    let reply = ci.system.send(reqwest::Method::POST, "/v1/getQueue", &headers, read).await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "missing_scope"));
}

#[tokio::test]
async fn webhooks_start_builds_on_sqlite() {
    webhooks_start_builds(On::Sqlite).await;
}

#[tokio::test]
async fn webhooks_start_builds_on_postgres() {
    webhooks_start_builds(On::Postgres).await;
}

/// A process with its children, killed when the test ends.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ended = self.0.wait();
    }
}

/// A machine that the server cannot reach polls the event log, and starts a build for each test
/// run.
async fn a_poller_starts_builds(on: On) {
    let ci = Ci::new(on, "none").await;
    let system = &ci.system;
    let reader = ["--org", "acme", "--scope", "queue:read", "--repo", REPOSITORY];
    let reader = system.token_with(&reader).1;
    // Each of the two programs has the token that it needs.
    let build = format!(
        "#!/bin/sh\nSIGNALBOX_TOKEN={} exec {}\n",
        ci.token,
        script("test-candidate.sh").display()
    );
    std::fs::write(system.path("build.sh"), build).expect("written");
    let position = system.path("position");
    let mut follow = ci.command(&script("follow-requests.sh"));
    follow.arg("sh").arg(system.path("build.sh"));
    follow.env("SIGNALBOX_TOKEN", reader).env("POSITION", &position).process_group(0);
    let _follow = Group(follow.spawn().expect("a poller"));
    system.until("the poller has a position", async |_: &System| position.exists()).await;
    let (good, bad) = ci.submitted().await;
    system.until_state(good, "MERGED").await;
    system.until_state(bad, "FAILED").await;
    assert_eq!(system.on_main("good.txt"), "good");
}

#[tokio::test]
async fn a_poller_starts_builds_on_sqlite() {
    a_poller_starts_builds(On::Sqlite).await;
}

#[tokio::test]
async fn a_poller_starts_builds_on_postgres() {
    a_poller_starts_builds(On::Postgres).await;
}
