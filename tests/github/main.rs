//! The whole server on the double: requests and comments go in, tested trees come out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_domain::ids::Sha;
use signalbox_domain::queue::Change;
use signalbox_testkit::github_double::{Fault, Workplace};
use tempfile::TempDir;

/// The token by which the server acts.
const TOKEN: &str = "ghp_for_tests_only";

/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_mins(3);

/// A server, and the world that it works in.
struct System {
    world: Workplace,
    folder: TempDir,
    server: Child,
    port: u16,
    token: String,
    http: reqwest::Client,
}

impl Drop for System {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// The program, which `tests/run` builds before the tests: it is beside this test's folder.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this test's own path");
    let target = test.parent().and_then(Path::parent).expect("the target folder");
    let program = target.join("signalbox");
    assert!(program.exists(), "build it first: cargo build -p signalbox");
    program
}

impl System {
    /// A server that hears of everything; one event in `lose` is lost, and one in `double` comes
    /// twice. A check `test` is required by a ruleset, and fails where there is a file `bad.txt`.
    async fn new(lose: u64, double: u64, concurrency: u32) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let world = Workplace::new(TOKEN);
        world.commit(&[("a.txt", "base\n")], "base");
        world.push("main");
        world.double.require("main", &["test"], &[]);
        world.double.set_ci(|files| {
            let bad = files.iter().any(|it| it.contains("bad"));
            vec![("test", if bad { "failure" } else { "success" })]
        });
        let folder = TempDir::new().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("token"), TOKEN).expect("written");
        std::fs::write(path("secret"), "sesame\n").expect("written");
        let config = format!(
            "[[organizations]]\nslug = \"acme\"\n[[organizations.hosts]]\nkind = \"github\"\n\
             host = \"github.com\"\napi_url = {:?}\ntoken_file = {:?}\n\
             webhook_secret_file = {:?}\n",
            world.double.url,
            path("token"),
            path("secret")
        );
        std::fs::write(path("signalbox.toml"), config).expect("written");
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            listener.local_addr().expect("its address").port()
        };
        let listen = format!("127.0.0.1:{port}");
        let run = |args: &[&str]| {
            let mut command = Command::new(program());
            command.current_dir(folder.path());
            command.args(["--config", "signalbox.toml", "--data-dir", "data"]).args(args);
            command
        };
        let created = run(&["token", "create", "--org", "acme", "--json"]).output();
        let created = created.expect("it can be run");
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let created: Value = serde_json::from_slice(&created.stdout).expect("JSON");
        let log = std::fs::File::create(path("server.log")).expect("a log");
        let server = run(&["serve", "--listen", &listen])
            .env("RUST_LOG", "info")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a server");
        let http = reqwest::Client::builder().timeout(PATIENCE).build().expect("a client");
        let token = created["token"].as_str().expect("a token").to_owned();
        let system = Self { world, folder, server, port, token, http };
        system
            .until("the server is ready", async |it: &Self| {
                let ready = it.http.get(format!("http://127.0.0.1:{}/readyz", it.port));
                ready.send().await.is_ok_and(|reply| reply.status().is_success())
            })
            .await;
        let hooks = format!("http://127.0.0.1:{port}/hooks/github.com");
        system.world.double.send_events(&hooks, "sesame", lose, double);
        system.call("createQueue", json!({ "concurrency": concurrency })).await;
        system
    }

    async fn send(&self, path: &str, headers: &[(&str, &str)], body: String) -> (u16, Value) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let mut request = self.http.request(Method::POST, url).body(body);
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = request.send().await.expect("a reply");
        let status = reply.status().as_u16();
        let text = reply.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn try_call(&self, operation: &str, mut body: Value) -> (u16, Value) {
        body["repo"] = json!({ "host": "github.com", "owner": "Acme", "name": "calc" });
        body["targetBranch"] = json!("main");
        let path = format!("/v1/{operation}");
        self.send(&path, &[("x-api-token", &self.token)], body.to_string()).await
    }

    async fn call(&self, operation: &str, body: Value) -> Value {
        let (status, reply) = self.try_call(operation, body).await;
        assert_eq!(status, 200, "{operation}: {reply}");
        reply
    }

    async fn submit(&self, change: &Change) {
        self.call("submitPullRequest", json!({ "pr": { "number": change.pr.0 } })).await;
    }

    /// The state of a pull request; empty when it was never submitted.
    async fn state(&self, change: &Change) -> String {
        let body = json!({ "pr": { "number": change.pr.0 } });
        let (_, entry) = self.try_call("getSubmittedPullRequest", body).await;
        entry["state"].as_str().unwrap_or_default().to_owned()
    }

    async fn until_state(&self, change: &Change, state: &str) {
        let what = format!("#{} is {state}", change.pr);
        self.until(&what, async |it: &Self| it.state(change).await == state).await;
    }

    /// Waits for something to become true; tells what the server said when it does not.
    async fn until(&self, what: &str, is_so: impl AsyncFn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self).await {
            if begun.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.folder.path().join("server.log"));
                let queue = self.call("getQueue", json!({})).await;
                panic!("{what}: waited too long\n{queue}\n{}", log.unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Every tree that `main` has had since its first was one that a run has passed.
    fn only_tested_trees_have_landed(&self) {
        let passed = self.world.double.passed_trees();
        let landed = self.world.double.landed_trees();
        for tree in landed.iter().skip(1) {
            assert!(passed.contains(tree), "{tree} was never tested: {landed:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_pull_requests_are_queued_by_requests_and_by_a_comment() {
    let system = System::new(0, 2, 4).await;
    let (world, double) = (&system.world, &system.world.double);
    double.permit("ada", "write");
    double.permit("bob", "read");
    let first = world.open("first", &[("a.txt", "first\n")]);
    let second = world.open("second", &[("b.txt", "b\n")]);
    let third = world.open("third", &[("c.txt", "c\n")]);
    let conflict = world.open("conflict", &[("a.txt", "conflict\n")]);
    let bad = world.open("bad", &[("bad.txt", "x\n")]);
    let stranger = world.open("stranger", &[("d.txt", "d\n")]);
    for change in [&first, &second] {
        system.submit(change).await;
    }
    let number = |change: &Change| u64::from(change.pr.0);
    let asked = double.comment(number(&third), "ada", "go\n/signalbox merge --priority high");
    let refused = double.comment(number(&stranger), "bob", "/signalbox merge");
    for change in [&bad, &conflict] {
        system.submit(change).await;
    }
    for change in [&first, &second, &third] {
        system.until_state(change, "MERGED").await;
    }
    system.until_state(&bad, "FAILED").await;
    // It could be merged when it was submitted; now it waits for its author, or has failed.
    system
        .until("the conflict is noticed", async |it: &System| {
            ["FAILED", "NOT_READY"].contains(&it.state(&conflict).await.as_str())
        })
        .await;
    assert_eq!(system.state(&stranger).await, "", "readers may not command");
    assert_eq!(double.reactions(asked), ["+1"], "told twice, done once");
    assert_eq!(double.reactions(refused), ["-1"]);
    system.only_tested_trees_have_landed();
    let files = world.bare(&["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(files, "a.txt\nb.txt\nc.txt");
    assert_eq!(world.bare(&["show", "main:a.txt"]), "first");

    system
        .until("the pull requests show it", async |it: &System| {
            let double = &it.world.double;
            let comments = double.comments(number(&first));
            comments.iter().any(|(_, body)| body.contains("has landed"))
                && double.statuses(bad.head.as_str()).iter().any(|(_, state)| state == "failure")
        })
        .await;
    let ours = double.comments(number(&first));
    assert_eq!(ours.len(), 1, "one comment, edited: {ours:?}");
    assert!(ours[0].1.contains("is the tested tree"), "{ours:?}");
    let shown = double.statuses(first.head.as_str());
    assert!(shown.contains(&("signalbox/main".to_owned(), "success".to_owned())), "{shown:?}");
    assert_eq!(double.pull(number(&first)), (false, false), "a squashed one is closed");
    system
        .until("test branches are gone", async |it: &System| {
            let listed = ["for-each-ref", "--format=%(refname)", "refs/heads/"];
            !it.world.bare(&listed).contains("signalbox-merge/")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_reports_its_targets_once_and_only_for_its_own_commit() {
    let system = System::new(0, 0, 1).await;
    let (world, double) = (&system.world, &system.world.double);
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    double.set_fork(u64::from(topic.pr.0), "eve");
    let run = |id: u64, status: &str, sha: &Sha| {
        json!({"id": id, "status": status, "event": "pull_request", "head_sha": sha.as_str(),
            "head_repository": {"full_name": "eve/calc"},
            "repository": {"full_name": "acme/calc"}})
    };
    let main = Sha::new(world.bare(&["rev-parse", "main"])).expect("a commit");
    double.add_workflow_run(1, run(1, "in_progress", &topic.head));
    double.add_workflow_run(2, run(2, "completed", &topic.head));
    double.add_workflow_run(3, run(3, "in_progress", &main));
    let report = async |run: &str, sha: &Sha| {
        let body = json!({
            "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
            "targetBranch": "main",
            "pr": {"number": topic.pr.0.to_string(), "sha": sha.as_str()},
            "impactedTargets": ["//a"],
        });
        let headers = [("x-api-token", ""), ("x-forked-workflow-run-id", run)];
        system.send("/v1/setImpactedTargets", &headers, body.to_string()).await.0
    };
    assert_eq!(report("2", &topic.head).await, 401, "the run has ended");
    assert_eq!(report("3", &topic.head).await, 401, "the run is for another commit");
    assert_eq!(report("3", &main).await, 401, "the commit is not the pull request's");
    assert_eq!(report("9", &topic.head).await, 401, "there is no such run");
    assert_eq!(report("x", &topic.head).await, 401, "that is no run");
    assert_eq!(report("1", &topic.head).await, 200);
    assert_eq!(report("1", &topic.head).await, 401, "a run vouches once");
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_events_are_refused_and_hosts_must_be_known() {
    let system = System::new(0, 0, 1).await;
    let body = json!({"zen": "x"}).to_string();
    let headers = [("x-github-event", "ping"), ("x-github-delivery", "d")];
    assert_eq!(system.send("/hooks/github.com", &headers, body.clone()).await.0, 403);
    assert_eq!(system.send("/hooks/nowhere.example", &headers, body).await.0, 404);
}

/// Pull requests in numbers, with a host in trouble: `SIGNALBOX_GITHUB_PRS` says how many.
#[tokio::test(flavor = "multi_thread")]
async fn under_faults_main_is_always_a_tested_tree_and_nobody_is_lost() {
    let asked = std::env::var("SIGNALBOX_GITHUB_PRS").ok().and_then(|it| it.parse().ok());
    let count: usize = asked.unwrap_or(12);
    let system = System::new(0, 3, 6).await;
    let (world, double) = (&system.world, &system.world.double);
    let mut changes = Vec::new();
    for number in 0..count {
        let name = if number % 7 == 5 { format!("bad{number}") } else { format!("good{number}") };
        changes.push(world.open(&name, &[(&format!("{name}.txt"), "x\n")]));
        match number % 4 {
            0 => double.plan("", "/merges", 1, Fault::Status(502)),
            1 => double.plan("PATCH", "/git/refs/heads/main", 1, Fault::LostAnswer),
            2 => double.plan("POST", "/git/", 1, Fault::LostAnswer),
            _ => double.plan("GET", "/pulls/", 1, Fault::Status(503)),
        }
    }
    let before = double.log().len();
    for change in &changes {
        // The host may be in trouble at this very moment.
        system
            .until("it is taken", async |it: &System| {
                let body = json!({ "pr": { "number": change.pr.0 } });
                it.try_call("submitPullRequest", body).await.0 == 200
            })
            .await;
    }
    for (number, change) in changes.iter().enumerate() {
        let wanted = if number % 7 == 5 { "FAILED" } else { "MERGED" };
        system.until_state(change, wanted).await;
    }
    system.only_tested_trees_have_landed();
    let files: BTreeSet<String> = world
        .bare(&["ls-tree", "-r", "--name-only", "main"])
        .lines()
        .map(ToOwned::to_owned)
        .collect();
    assert!(!files.iter().any(|it| it.starts_with("bad")), "{files:?}");
    let merged = changes.len() - (0..count).filter(|it| it % 7 == 5).count();
    assert_eq!(files.len(), merged + 1);
    let log = double.log();
    let paid = log.iter().skip(before).filter(|it| it.status != 304).count();
    println!("{} calls ({paid} of quota) for {merged} merged", log.len() - before);
}
