//! A server process, a repository, and a client.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

mod requests;

pub(crate) use requests::{Pieces, Reply};

/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
const CONFIG: &str = "[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\n";

/// Which database a test runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum On {
    Sqlite,
    Postgres,
}

/// Everything that a test needs.
pub(crate) struct System {
    folder: TempDir,
    database: String,
    server: Option<Child>,
    port: u16,
    token: String,
    http: reqwest::Client,
    environment: Vec<(String, String)>,
}

/// The program, which `tests/run` builds before the tests: it is beside this test's folder.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this test's own path");
    let program =
        test.parent().and_then(Path::parent).expect("the target folder").join("signalbox");
    assert!(program.exists(), "build it first: cargo build -p signalbox");
    program
}

fn output(command: &mut Command) -> String {
    let done = command.output().expect("it can be run");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

impl System {
    /// A repository with a branch `main`, a check, a running server and a queue.
    pub(crate) async fn new(on: On, check: &str, concurrency: u32) -> Self {
        Self::with_environment(on, check, concurrency, &[]).await
    }

    /// The same with variables for every process of the server's program.
    pub(crate) async fn with_environment(
        on: On,
        check: &str,
        concurrency: u32,
        environment: &[(&str, &str)],
    ) -> Self {
        let folder = TempDir::new().expect("a folder");
        let database = match on {
            On::Sqlite => format!("sqlite://{}", folder.path().join("test.db").display()),
            On::Postgres => signalbox_testkit::postgres::Server::shared().create_database(),
        };
        Self::set_up(folder, database, check, concurrency, environment).await
    }

    /// The same on an empty database.
    pub(crate) async fn on_database(database: String, check: &str, concurrency: u32) -> Self {
        let folder = TempDir::new().expect("a folder");
        Self::set_up(folder, database, check, concurrency, &[]).await
    }

    async fn set_up(
        folder: TempDir,
        database: String,
        check: &str,
        concurrency: u32,
        environment: &[(&str, &str)],
    ) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(own).collect();
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client");
        let mut system = Self {
            folder,
            database,
            server: None,
            port: signalbox_tests::free_port(),
            token: String::new(),
            http,
            environment,
        };
        for inner in ["bare.git", "work"] {
            std::fs::create_dir(system.path(inner)).expect("a folder");
        }
        system.git("bare.git", &["init", "-q", "--bare"]);
        system.git("work", &["init", "-q"]);
        system.write(&[("check.sh", check), (".signalbox.toml", CONFIG), ("file.txt", "base\n")]);
        system.commit("base");
        system.push("main");
        let bare = system.path("bare.git").display().to_string();
        system.run(&["repo", "add", "git.local/acme/calc", "--org", "acme", "--path", &bare]);
        let created = system.run(&["token", "create", "--org", "acme", "--scope", "all", "--json"]);
        let created: Value = serde_json::from_str(&created).expect("JSON");
        system.token = created["token"].as_str().expect("a token").to_owned();
        system.start().await;
        system.call("createQueue", json!({ "concurrency": concurrency })).await;
        system
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Calls git in a folder of this test.
    pub(crate) fn git(&self, folder: &str, args: &[&str]) -> String {
        output(
            Command::new("git")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
                .args(["-c", "init.defaultBranch=main", "-C"])
                .arg(self.path(folder))
                .args(args),
        )
    }

    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.path("work").join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
    }

    pub(crate) fn commit(&self, title: &str) {
        self.git("work", &["add", "-A"]);
        self.git("work", &["commit", "-q", "-m", title]);
    }

    pub(crate) fn push(&self, branch: &str) {
        let bare = self.path("bare.git").display().to_string();
        self.git("work", &["push", "-q", &bare, branch]);
    }

    /// Runs the server's program on this test's database; returns its output.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        output(&mut self.command(args))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            // A relative folder, as the default is.
            .current_dir(self.folder.path())
            .args(["--database", &self.database, "--data-dir", "data"])
            .args(args)
            .env("RUST_LOG", "info")
            // These checks are the tests' own, and reach into their folders.
            .env("SIGNALBOX_SANDBOX__UNSAFE_LOCAL", "true")
            .envs(self.environment.iter().cloned());
        let config = self.path("signalbox.toml");
        if config.exists() {
            command.env("SIGNALBOX_CONFIG", config);
        }
        command
    }

    /// The token that requests are sent with.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The database's URL.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Another database from now on.
    pub(crate) fn use_database(&mut self, url: String) {
        self.database = url;
    }

    /// Where the server is.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A new token: its id and its text. It may do everything, unless the arguments say what.
    pub(crate) fn token_with(&self, args: &[&str]) -> (String, String) {
        let all: &[&str] = if args.contains(&"--scope") { &[] } else { &["--scope", "all"] };
        let created = self.run(&[&["token", "create", "--json"], all, args].concat());
        let created: Value = serde_json::from_str(&created).expect("JSON");
        let part = |key: &str| created[key].as_str().expect("text").to_owned();
        (part("id"), part("token"))
    }

    /// Makes a branch with these files on `main`, and opens a pull request from it.
    pub(crate) fn pull_request(&self, branch: &str, files: &[(&str, &str)]) -> u64 {
        self.pull_request_on("main", branch, files)
    }

    /// The same on another target.
    pub(crate) fn pull_request_on(
        &self,
        target: &str,
        branch: &str,
        files: &[(&str, &str)],
    ) -> u64 {
        self.open_from(target, branch, files, &[])
    }

    /// Makes a branch that adds a file, and opens a pull request with a description from it.
    pub(crate) fn described(&self, branch: &str, description: &str) -> u64 {
        let file = (&*format!("{branch}.txt"), "x\n");
        self.open_from("main", branch, &[file], &["--description", description])
    }

    fn open_from(
        &self,
        target: &str,
        branch: &str,
        files: &[(&str, &str)],
        options: &[&str],
    ) -> u64 {
        self.git("work", &["checkout", "-q", "-b", branch, "main"]);
        self.write(files);
        self.commit(&format!("change {branch}"));
        self.push(branch);
        self.git("work", &["checkout", "-q", "main"]);
        let opened =
            ["pr", "open", "git.local/acme/calc", "--branch", branch, "--target", target, "--json"];
        let opened = [&opened, options].concat();
        let opened: Value = serde_json::from_str(&self.run(&opened)).expect("JSON");
        opened["number"].as_u64().expect("a number")
    }

    /// Starts the server and waits until it is ready. A child that a killed server was about to start
    /// holds its port for a moment, until the child's program runs; a child that runs must not.
    pub(crate) async fn start(&mut self) {
        let is_free =
            async |system: &Self| TcpListener::bind((Ipv4Addr::LOCALHOST, system.port)).is_ok();
        self.until_within(Duration::from_secs(5), "the port is free", is_free).await;
        let listen = format!("127.0.0.1:{}", self.port);
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("server.log"))
            .expect("a log");
        let mut command = self.command(&["serve", "--listen", &listen]);
        let out = std::fs::File::options().create(true).append(true).open(self.path("server.out"));
        command.stdout(out.expect("a file")).stderr(log);
        self.server = Some(command.spawn().expect("a server"));
        let url = format!("http://{listen}/readyz");
        let ready = async |system: &Self| {
            let reply = system.http.get(&url).send().await;
            reply.is_ok_and(|reply| reply.status().is_success())
        };
        self.until("the server is ready", ready).await;
    }

    /// The most memory that the server has had, in MiB, as Linux reports it.
    pub(crate) fn peak_memory(&self) -> u64 {
        let server = self.server.as_ref().expect("a running server").id();
        let status = std::fs::read_to_string(format!("/proc/{server}/status")).expect("its status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
        let kibibytes = peak.split_whitespace().next().expect("a number");
        kibibytes.parse::<u64>().expect("a number") / 1024
    }

    /// The id of the server's process.
    pub(crate) fn server_id(&self) -> u32 {
        self.server.as_ref().expect("a running server").id()
    }

    /// Kills the server without warning.
    pub(crate) fn kill(&mut self) {
        let mut server = self.server.take().expect("a running server");
        server.kill().expect("killed");
        server.wait().expect("gone");
    }

    /// Sends the server a signal.
    pub(crate) fn signal(&self, name: &str) {
        let server = self.server.as_ref().expect("a running server").id();
        output(Command::new("kill").args([&format!("-{name}"), &server.to_string()]));
    }

    /// Asks the server to stop, and returns its exit code and how long it took.
    pub(crate) fn terminate(&mut self) -> (Option<i32>, Duration) {
        let mut server = self.server.take().expect("a running server");
        let begun = Instant::now();
        output(Command::new("kill").args(["-TERM", &server.id().to_string()]));
        let status = server.wait().expect("gone");
        (status.code(), begun.elapsed())
    }

    /// Another server on the same database.
    pub(crate) async fn another_server(&self) -> Self {
        let mut other = Self {
            folder: TempDir::new().expect("a folder"),
            database: self.database.clone(),
            server: None,
            port: signalbox_tests::free_port(),
            token: self.token.clone(),
            http: self.http.clone(),
            environment: self.environment.clone(),
        };
        // All servers on a database have one key for the secrets of webhooks.
        std::fs::create_dir_all(other.path("data")).expect("a folder");
        let key = "data/webhooks.key";
        std::fs::copy(self.path(key), other.path(key)).expect("a key");
        other.start().await;
        other
    }

    pub(crate) async fn submit(&self, pr: u64) {
        self.call("submitPullRequest", json!({ "pr": { "number": pr } })).await;
    }

    pub(crate) async fn entry(&self, pr: u64) -> Value {
        self.call("getSubmittedPullRequest", json!({ "pr": { "number": pr } })).await
    }

    pub(crate) async fn state(&self, pr: u64) -> String {
        self.entry(pr).await["state"].as_str().expect("a state").to_owned()
    }

    /// Waits for a pull request to be in a state.
    pub(crate) async fn until_state(&self, pr: u64, state: &str) {
        let what = format!("#{pr} is {state}");
        self.until(&what, async |system: &Self| system.state(pr).await == state).await;
    }

    /// Waits for a condition; prints the server's log when it stays false.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn(&Self) -> bool) {
        self.until_within(PATIENCE, what, is_so).await;
    }

    /// The same with a longer timeout.
    pub(crate) async fn until_within(
        &self,
        patience: Duration,
        what: &str,
        is_so: impl AsyncFn(&Self) -> bool,
    ) {
        let begun = Instant::now();
        while !is_so(self).await {
            if begun.elapsed() > patience {
                let log = std::fs::read_to_string(self.path("server.log")).unwrap_or_default();
                panic!("{what}: waited too long\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// The public events of that name, in their order.
    pub(crate) async fn events(&self, kind: &str) -> Vec<signalbox_domain::ports::PublicEvent> {
        let database = signalbox_persistence::connect(&self.database).await.expect("a database");
        let stores = database.stores();
        let slug = signalbox_domain::ids::OrgSlug::new("acme").expect("a slug");
        let org =
            stores.account.orgs.find_by_slug(&slug).await.expect("a read").expect("it is there");
        let kinds = [kind.to_owned()];
        let (mut events, mut position) = (Vec::new(), 0);
        loop {
            let page = stores.webhook.event_log.after(org.id, position, Some(&kinds), 500).await;
            let page = page.expect("a page");
            let Some(last) = page.last() else { return events };
            position = last.position;
            events.extend(page);
        }
    }

    /// How many effects have not been done.
    pub(crate) async fn left_to_do(&self) -> u64 {
        let database = signalbox_persistence::connect(&self.database).await.expect("a database");
        let outbox = database.stores().queue.outbox;
        let far = signalbox_domain::time::Timestamp::from_unix_seconds(10_000_000_000);
        let mut left = 0;
        for class in signalbox_domain::queue::EffectClass::ALL {
            left += outbox.backlog(*class, far).await.expect("a backlog").due;
        }
        left
    }

    /// The panics that the server has written to its log.
    pub(crate) fn panics(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("server.log")).unwrap_or_default();
        let mut lines = log.lines();
        let mut panics = Vec::new();
        while let Some(line) = lines.next() {
            if line.contains("panicked at") {
                panics.push(format!("{line} {}", lines.next().unwrap_or_default()));
            }
        }
        panics
    }

    /// The subjects of the commits on `main`, oldest first.
    pub(crate) fn history(&self) -> Vec<String> {
        let log = self.git("bare.git", &["log", "--reverse", "--format=%s", "main"]);
        log.lines().map(ToOwned::to_owned).collect()
    }

    /// The content of a file on `main`.
    pub(crate) fn on_main(&self, file: &str) -> String {
        self.git("bare.git", &["show", &format!("main:{file}")])
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.kill());
            drop(server.wait());
        }
        // A panic fails the test, whatever else it checked.
        if !std::thread::panicking() {
            let panics = self.panics();
            assert!(panics.is_empty(), "the server panicked: {panics:#?}");
        }
    }
}
