//! Containers of Podman with images made of programs of this machine, and the API of its engine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::UnixStream;

/// What each image has, beside the libraries of these.
const PROGRAMS: [&str; 10] =
    ["cat", "head", "id", "ln", "ls", "sh", "sleep", "touch", "true", "yes"];

/// What a container of the image would run.
const ENTRYPOINT: &str = "ENTRYPOINT [\"/usr/bin/cat\", \"/nothing\"]";

/// What Podman did, where it is installed.
#[must_use]
pub fn podman(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("podman");
    command.args(arguments).stdin(Stdio::null()).output().ok()
}

/// What it printed.
#[must_use]
pub fn text(said: &Output) -> String {
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// An image, removed in the end.
#[derive(Debug)]
pub struct Image(String);

impl Image {
    /// With the usual programs, and `further` of this machine. `None` where Podman does not work.
    /// What an image would run is not what a check is.
    ///
    /// # Panics
    ///
    /// When a program is missing or cannot be packed.
    #[must_use]
    pub fn new(name: &str, further: &[&Path]) -> Option<Self> {
        podman(&["info"])?;
        let folder = TempDir::new().expect("a folder");
        let archive = folder.path().join("image.tar");
        let usual = PROGRAMS.map(|name| Path::new("/usr/bin").join(name));
        let mut files = BTreeSet::new();
        for path in usual.iter().map(PathBuf::as_path).chain(further.iter().copied()) {
            let libraries = Command::new("ldd").arg(path).output().expect("ldd");
            let libraries = text(&libraries);
            let words = libraries.split_whitespace().filter(|it| it.starts_with('/'));
            files.extend(words.map(PathBuf::from));
            files.insert(path.to_owned());
        }
        let names = files.iter().map(|it| it.strip_prefix("/").expect("an absolute path"));
        let mut pack = Command::new("tar");
        pack.args(["--create", "--dereference", "--directory", "/", "--file"]).arg(&archive);
        assert!(pack.args(names).status().expect("tar").success());
        let image = Self(format!("localhost/signalbox-{name}:{}", std::process::id()));
        let archive = archive.display().to_string();
        let imported = podman(&["import", "--quiet", "--change", ENTRYPOINT, &archive, &image.0])?;
        let works = imported.status.success()
            && podman(&image.run(&["--rm"], &["/usr/bin/true"]))?.status.success();
        works.then_some(image)
    }

    /// By which an engine knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The arguments that run a command in it, with limits that this process may set.
    #[must_use]
    pub fn run<'a>(&'a self, further: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
        let limits = ["--ulimit", "nofile=1000:1000", "--ulimit", "nproc=1000:1000"];
        let run = [
            &["run", "--pull", "never", "--network", "none", "--entrypoint", ""][..],
            &limits,
            further,
        ];
        [&run.concat()[..], &[&self.0], command].concat()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        drop(podman(&["rmi", "--force", &self.0]));
    }
}

/// The containers with a label.
///
/// # Panics
///
/// When Podman is not installed.
#[must_use]
pub fn left(label: &str) -> String {
    let label = format!("label={label}");
    text(&podman(&["ps", "--all", "--quiet", "--filter", &label]).expect("podman"))
}

/// A service of Podman, ended in the end.
#[derive(Debug)]
pub struct Service {
    folder: TempDir,
    process: Child,
}

impl Service {
    /// Starts one, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub async fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let process = Self::process(&folder.path().join("podman.sock"));
        let service = Self { folder, process };
        service.until_it_answers().await;
        service
    }

    fn process(socket: &Path) -> Child {
        let mut command = Command::new("podman");
        command.args(["system", "service", "--time", "0"]);
        command.arg(format!("unix://{}", socket.display()));
        // What an engine notes about a container without memory it writes there.
        command.current_dir(socket.parent().expect("a folder"));
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("podman")
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("podman.sock")
    }

    /// Its address.
    #[must_use]
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    async fn until_it_answers(&self) {
        tokio::time::timeout(Duration::from_secs(30), async {
            while UnixStream::connect(self.socket()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .expect("Podman listens");
    }

    /// Ends it.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn end(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
        drop(std::fs::remove_file(self.socket()));
    }

    /// Starts it again where it was.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn again(&mut self) {
        self.process = Self::process(&self.socket());
        self.until_it_answers().await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
