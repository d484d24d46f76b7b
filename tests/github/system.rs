//! A whole server, and the host that it works with.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_domain::queue::Change;
use signalbox_testkit::github_double::{Carelessness, Workplace};
use tempfile::TempDir;

/// The token by which the server acts.
const TOKEN: &str = "ghp_for_tests_only";

/// The type of requests.
pub(crate) const JSON: &str = "application/json";

/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_mins(3);

/// A server, and the world that it works in.
pub(crate) struct System {
    pub(crate) world: Workplace,
    pub(crate) folder: TempDir,
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

/// Starts the server in a folder that has its configuration. Its log goes to a file there.
fn serve(folder: &Path, port: u16) -> Child {
    let mut log = std::fs::OpenOptions::new();
    let log = log.create(true).append(true).open(folder.join("server.log")).expect("a log");
    Command::new(program())
        .current_dir(folder)
        .args(["--config", "signalbox.toml", "--data-dir", "data"])
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .env("RUST_LOG", "info")
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("a server")
}

impl System {
    /// A server that receives all events, with these settings. A check `test` is required by a
    /// ruleset, and fails where there is a file with `bad` in its name.
    pub(crate) async fn new(carelessness: Carelessness, queue: Value) -> Self {
        Self::with(carelessness, queue, "").await
    }

    /// The same with more settings of the host, one a line.
    pub(crate) async fn with(carelessness: Carelessness, queue: Value, host: &str) -> Self {
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
             webhook_secret_file = {:?}\nreread_seconds = {}\n{host}",
            world.double.url,
            path("token"),
            path("secret"),
            // Lost events are made up for soon.
            if carelessness.lose > 0 { 5 } else { 600 },
        );
        std::fs::write(path("signalbox.toml"), config).expect("written");
        let port = signalbox_tests::free_port();
        let run = |args: &[&str]| {
            let mut command = Command::new(program());
            command.current_dir(folder.path());
            command.args(["--config", "signalbox.toml", "--data-dir", "data"]).args(args);
            command
        };
        let created =
            run(&["token", "create", "--org", "acme", "--scope", "all", "--json"]).output();
        let created = created.expect("it can be run");
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let created: Value = serde_json::from_slice(&created.stdout).expect("JSON");
        let server = serve(folder.path(), port);
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client");
        let token = created["token"].as_str().expect("a token").to_owned();
        let system = Self { world, folder, server, port, token, http };
        system.until_ready().await;
        let hooks = format!("http://127.0.0.1:{port}/hooks/github.com");
        system.world.double.send_events(&hooks, "sesame", carelessness);
        system.call("createQueue", queue).await;
        system
    }

    async fn until_ready(&self) {
        self.until("the server is ready", async |it: &Self| {
            let ready = it.http.get(format!("http://127.0.0.1:{}/readyz", it.port));
            ready.send().await.is_ok_and(|reply| reply.status().is_success())
        })
        .await;
    }

    /// Kills the server, and starts it again on the same data.
    pub(crate) async fn restart(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
        self.server = serve(self.folder.path(), self.port);
        self.until_ready().await;
    }

    /// A path below the server's folder for data.
    pub(crate) fn data(&self, path: &str) -> PathBuf {
        self.folder.path().join("data").join(path)
    }

    /// Replaces the token in its file.
    pub(crate) fn write_token(&self, token: &str) {
        std::fs::write(self.folder.path().join("token"), token).expect("written");
    }

    /// Why a pull request waits; empty when it does not.
    pub(crate) async fn waits(&self, change: &Change) -> String {
        let body = json!({ "pr": { "number": change.pr.0 } });
        let (_, entry) = self.try_call("getSubmittedPullRequest", body).await;
        entry["waitReason"]["kind"].as_str().unwrap_or_default().to_owned()
    }

    /// The impacted targets of a pull request under test.
    pub(crate) async fn targets(&self, change: &Change) -> Value {
        let entry = json!({ "pr": { "number": change.pr.0 } });
        let entry = self.call("getSubmittedPullRequest", entry).await;
        let run = json!({ "testRunId": entry["testRunId"] });
        self.call("getMergeQueueTestingDetails", run).await["impactedTargets"].clone()
    }

    pub(crate) async fn until_waits(&self, change: &Change, kind: &str) {
        let what = format!("#{} waits: {kind}", change.pr);
        self.until(&what, async |it: &Self| it.waits(change).await == kind).await;
    }

    pub(crate) fn server_log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }

    pub(crate) async fn send(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        content_type: &str,
        body: String,
    ) -> (u16, Value) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let mut request = self.http.request(Method::POST, url).body(body);
        request = request.header("content-type", content_type);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = request.send().await.expect("a reply");
        let status = reply.status().as_u16();
        let text = reply.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn try_call(&self, operation: &str, mut body: Value) -> (u16, Value) {
        body["repo"] = json!({ "host": "github.com", "owner": "Acme", "name": "calc" });
        body["targetBranch"] = json!("main");
        let path = format!("/v1/{operation}");
        let headers = [("x-api-token", self.token.as_str())];
        self.send(&path, &headers, JSON, body.to_string()).await
    }

    pub(crate) async fn call(&self, operation: &str, body: Value) -> Value {
        let (status, reply) = self.try_call(operation, body).await;
        assert_eq!(status, 200, "{operation}: {reply}");
        reply
    }

    /// Reads a path of the API.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let reply = self.http.get(url).header("x-api-token", &self.token).send().await;
        let text = reply.expect("a reply").text().await.expect("a body");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// Uploads a JUnit report, with an identity token of CI or the token of the tests.
    pub(crate) async fn upload_as(
        &self,
        identity: Option<&str>,
        query: &str,
        report: String,
    ) -> Value {
        let path = format!("/v1/flaky-tests/upload?{query}");
        let headers = [("x-api-token", identity.unwrap_or(&self.token))];
        let (status, receipt) = self.send(&path, &headers, "application/xml", report).await;
        assert_eq!(status, 200, "{receipt}");
        receipt
    }

    /// The commit under test of a pull request.
    pub(crate) async fn candidate(&self, change: &Change) -> String {
        let pattern = format!("refs/heads/signalbox-merge/pr-{}", change.pr);
        let listed = || self.world.bare(&["for-each-ref", "--format=%(objectname)", &pattern]);
        self.until("there is a candidate", async |_: &Self| !listed().is_empty()).await;
        listed().lines().next().expect("a candidate").to_owned()
    }

    /// The submitted pull request as the API shows it.
    pub(crate) async fn entry(&self, change: &Change) -> Value {
        self.call("getSubmittedPullRequest", json!({ "pr": { "number": change.pr.0 } })).await
    }

    pub(crate) async fn submit(&self, change: &Change) {
        self.call("submitPullRequest", json!({ "pr": { "number": change.pr.0 } })).await;
    }

    /// The state of a pull request; empty when it was never submitted.
    pub(crate) async fn state(&self, change: &Change) -> String {
        let body = json!({ "pr": { "number": change.pr.0 } });
        let (_, entry) = self.try_call("getSubmittedPullRequest", body).await;
        entry["state"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn until_state(&self, change: &Change, state: &str) {
        let what = format!("#{} is {state}", change.pr);
        self.until(&what, async |it: &Self| it.state(change).await == state).await;
    }

    /// Waits for a condition; prints the server's log when it stays false.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn(&Self) -> bool) {
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
    pub(crate) fn only_tested_trees_have_landed(&self) {
        let passed = self.world.double.passed_trees();
        let landed = self.world.double.landed_trees();
        for tree in landed.iter().skip(1) {
            assert!(passed.contains(tree), "{tree} was never tested: {landed:?}");
        }
    }
}
