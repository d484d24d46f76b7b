//! A temporary PostgreSQL server for tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The URL of a running server to use instead, as a superuser and without a database.
const URL_VARIABLE: &str = "SIGNALBOX_TEST_POSTGRES_URL";

/// The role of databases for tests.
const ROLE: &str = "signalbox_tests";

/// A running server with its data folder.
pub struct Server {
    url: String,
    own: Option<Cluster>,
}

/// A server that this process has started.
struct Cluster {
    bin: PathBuf,
    folder: TempDir,
    port: u16,
}

impl Server {
    /// The server of this test process: the one in the environment variable, or one of its own.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| match std::env::var(URL_VARIABLE) {
            Ok(url) => Self { url: url.trim_end_matches('/').to_owned(), own: None },
            Err(_) => Self::start(),
        })
    }

    /// Starts a server of its own on a free port of the loopback address.
    pub fn start() -> Self {
        Self::started(false)
    }

    /// The same, but each commit waits for the disk.
    pub fn start_with_fsync() -> Self {
        Self::started(true)
    }

    fn started(fsync: bool) -> Self {
        let cluster = Cluster::new();
        let data = cluster.data();
        run(cluster
            .program("initdb")
            .args(["-A", "trust", "-U", "postgres", "-N", "-D"])
            .arg(data));
        cluster.start(fsync);
        Self { url: cluster.url(), own: Some(cluster) }
    }

    /// Starts a standby of this server, which must be one of its own. It calls itself by that name.
    #[must_use]
    pub fn standby(&self, name: &str) -> Self {
        let cluster = Cluster::new();
        let own = self.own.as_ref().expect("a server of its own");
        let from =
            format!("host=127.0.0.1 port={} user=postgres application_name={name}", own.port);
        run(cluster
            .program("pg_basebackup")
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-d", &from, "-D"])
            .arg(cluster.data()));
        cluster.start(false);
        Self { url: cluster.url(), own: Some(cluster) }
    }

    /// Stops this server, which must be one of its own, as a crash does.
    pub fn crash(&self) {
        let own = self.own.as_ref().expect("a server of its own");
        run(&mut own.control(&["-m", "immediate", "stop"]));
    }

    /// The folder of the socket of this server, which must be one of its own, and its port.
    pub fn socket(&self) -> (&Path, u16) {
        let own = self.own.as_ref().expect("a server of its own");
        (own.folder.path(), own.port)
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        let own = self.own.as_ref().expect("a server of its own");
        run(&mut own.control(&["-w", "promote"]));
    }

    /// Creates an empty database of an ordinary role, for which the database keeps organizations
    /// apart, and returns its URL.
    pub fn create_database(&self) -> String {
        let name = format!("signalbox_{}", uuid::Uuid::new_v4().simple());
        self.command(&format!(
            "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN CREATEDB; \
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        ));
        self.command(&format!("CREATE DATABASE {name} OWNER {ROLE}"));
        let (scheme, rest) = self.url.split_once("://").expect("a URL");
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{ROLE}@{host}/{name}")
    }

    /// The URL of one of its databases for the superuser.
    pub fn as_superuser(&self, database: &str) -> String {
        let name = database.rsplit_once('/').map_or(database, |(_, name)| name);
        format!("{}/{name}", self.url)
    }

    /// Runs a command as the superuser.
    fn command(&self, sql: &str) {
        let psql = binaries().map_or_else(
            || PathBuf::from("psql"),
            |bin| {
                let beside = bin.join("psql");
                if beside.exists() { beside } else { PathBuf::from("psql") }
            },
        );
        let database = format!("{}/postgres", self.url);
        run(Command::new(psql).args(["-q", "-X", "-d", &database, "-c", sql]));
    }

    /// The URL of the server, without a database.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Cluster {
    fn new() -> Self {
        let bin = binaries().expect(
            "no PostgreSQL server binaries (initdb, pg_ctl) found: install Debian's `postgresql`, \
             or name a running server in SIGNALBOX_TEST_POSTGRES_URL",
        );
        let folder = TempDir::new().expect("a temporary folder");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        Self { bin, folder, port: free_port() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}", self.port)
    }

    /// PostgreSQL refuses to run as root.
    fn program(&self, name: &str) -> Command {
        let path = self.bin.join(name);
        if !is_root() {
            return Command::new(path);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
        command
    }

    fn control(&self, args: &[&str]) -> Command {
        let mut command = self.program("pg_ctl");
        command.arg("-D").arg(self.data()).args(args);
        command
    }

    fn start(&self, fsync: bool) {
        let (folder, log) = (self.folder.path(), self.folder.path().join("log"));
        let socket = folder.display();
        let fsync = if fsync { "on" } else { "off" };
        let options =
            format!("-p {} -k {socket} -c listen_addresses=127.0.0.1 -c fsync={fsync}", self.port);
        run(self.control(&["-w", "-o", &options]).arg("-l").arg(log).arg("start"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have been stopped.
        drop(self.control(&["-m", "immediate", "stop"]).output());
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

/// The folder of the newest server binaries on this machine.
fn binaries() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).find(|it| is_complete(it)));
    let installed = || {
        let mut versions: Vec<PathBuf> = std::fs::read_dir(Path::new("/usr/lib/postgresql"))
            .ok()?
            .filter_map(|it| Some(it.ok()?.path().join("bin")))
            .filter(|bin| is_complete(bin))
            .collect();
        versions.sort();
        versions.pop()
    };
    on_path.or_else(installed)
}

/// A folder may have links to some of the programs only.
fn is_complete(bin: &Path) -> bool {
    ["initdb", "pg_ctl", "pg_basebackup"].iter().all(|name| bin.join(name).exists())
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn run(command: &mut Command) {
    let done = command.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = done.unwrap_or_else(|error| panic!("could not run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
