//! A temporary PostgreSQL server for tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The URL of a running server to use instead, as a superuser and without a database.
const URL_VARIABLE: &str = "SIGNALBOX_TEST_POSTGRES_URL";

/// A running server with its data folder.
pub struct Server {
    url: String,
    stop: Option<(PathBuf, TempDir)>,
}

impl Server {
    /// The server of this test process: the one in the environment variable, or one of its own.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| match std::env::var(URL_VARIABLE) {
            Ok(url) => Self { url: url.trim_end_matches('/').to_owned(), stop: None },
            Err(_) => Self::start(),
        })
    }

    /// Starts a server of its own on a free port of the loopback address.
    pub fn start() -> Self {
        let bin = binaries().expect(
            "no PostgreSQL server binaries (initdb, pg_ctl) found: install Debian's `postgresql`, \
             or name a running server in SIGNALBOX_TEST_POSTGRES_URL",
        );
        let folder = TempDir::new().expect("a temporary folder");
        let data = folder.path().join("data");
        let as_root = std::fs::metadata("/proc/self").is_ok_and(|it| {
            use std::os::unix::fs::MetadataExt;
            it.uid() == 0
        });
        if as_root {
            run(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        let port = free_port();
        let pg = |program: &str| {
            let path = bin.join(program);
            if as_root {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
                command.arg(path);
                command
            } else {
                Command::new(path)
            }
        };
        run(pg("initdb").args(["-A", "trust", "-N", "-U", "postgres", "-D"]).arg(&data));
        let options =
            format!("-p {port} -k {} -c listen_addresses=127.0.0.1 -F", folder.path().display());
        run(pg("pg_ctl")
            .args(["-w", "-D"])
            .arg(&data)
            .arg("-l")
            .arg(folder.path().join("log"))
            .args(["-o", &options, "start"]));
        Self { url: format!("postgres://postgres@127.0.0.1:{port}"), stop: Some((bin, folder)) }
    }

    /// Creates an empty database and returns its URL.
    pub fn create_database(&self) -> String {
        let name = format!("signalbox_{}", uuid::Uuid::new_v4().simple());
        let psql = binaries().map_or_else(
            || PathBuf::from("psql"),
            |bin| {
                let beside = bin.join("psql");
                if beside.exists() { beside } else { PathBuf::from("psql") }
            },
        );
        run(Command::new(psql)
            .args(["-q", "-X", "-d"])
            .arg(format!("{}/postgres", self.url))
            .args(["-c", &format!("CREATE DATABASE {name}")]));
        format!("{}/{name}", self.url)
    }

    /// The URL of the server, without a database.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((bin, folder)) = &self.stop {
            let as_postgres = Command::new("setpriv")
                .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
                .arg(bin.join("pg_ctl"))
                .args(["-m", "immediate", "-D"])
                .arg(folder.path().join("data"))
                .arg("stop")
                .stdout(Stdio::null())
                .status();
            if !as_postgres.is_ok_and(|status| status.success()) {
                drop(
                    Command::new(bin.join("pg_ctl"))
                        .args(["-m", "immediate", "-D"])
                        .arg(folder.path().join("data"))
                        .arg("stop")
                        .stdout(Stdio::null())
                        .status(),
                );
            }
        }
    }
}

/// The folder of the newest server binaries on this machine.
fn binaries() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).find(|it| it.join("initdb").exists()));
    let installed = || {
        let mut versions: Vec<PathBuf> = std::fs::read_dir(Path::new("/usr/lib/postgresql"))
            .ok()?
            .filter_map(|it| Some(it.ok()?.path().join("bin")))
            .filter(|bin| bin.join("initdb").exists())
            .collect();
        versions.sort();
        versions.pop()
    };
    on_path.or_else(installed)
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
