//! The server that is attacked, what an attacker knows of it, and what runs its checks.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::json;
use signalbox_tests::containers::{Image, Service, podman, text};
use signalbox_tests::not_tested;
use tempfile::TempDir;

use crate::harness::{On, System, program};

/// Runs what a pull request brings.
const CHECK: &str = "if [ -e attack.sh ]; then . ./attack.sh; fi\n";
pub(super) const SECRET: &str = "correct-horse-battery-staple";
/// Until the test releases it.
pub(super) const WAIT: &str = "while [ ! -e go ]; do sleep 0.05; done\n";
/// The user of an agent.
const AGENT: u32 = 65_533;

/// Whether the server isolates its checks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Checks<'a> {
    Isolated,
    /// By an agent, which is an ordinary user other than the server's.
    ByAgent,
    /// In containers of an image, which the program of an engine runs.
    InContainers(&'a Attacked),
    /// In containers of an image, which an engine runs on its own files.
    ByEngine(&'a Attacked, &'a Service),
    Unsafe,
}

/// An agent that runs as another user.
struct Agent {
    folder: TempDir,
    process: Child,
}

impl Agent {
    fn start(program: &Path, config: &str) -> Self {
        let folder = TempDir::with_prefix_in("signalbox-agent", "/opt").expect("a folder");
        let path = folder.path();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("opened");
        let (config_file, copy) = (path.join("agent.toml"), path.join("signalbox"));
        std::fs::write(&config_file, config).expect("written");
        std::fs::copy(program, &copy).expect("a copy");
        std::os::unix::fs::chown(path, Some(AGENT), Some(AGENT)).expect("given");
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={AGENT}"), format!("--regid={AGENT}")]);
        command.arg("--clear-groups").arg(copy).arg("agent").arg("--config").arg(config_file);
        command.arg("--data-dir").arg(path.join("data")).arg("--socket");
        command.arg(path.join("agent.sock")).args(["--allow-user", "root"]);
        let process = command.current_dir(path).spawn().expect("setpriv can be run");
        Self { folder, process }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("agent.sock")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A server, and what an attacker knows of it.
pub(super) struct Target {
    pub(super) system: System,
    head: String,
    attacks: Cell<u32>,
    program: PathBuf,
    agent: Option<Agent>,
    /// Whether the files of a check are those of an engine.
    by_engine: bool,
    _place: Option<TempDir>,
}

impl Target {
    pub(super) async fn new(on: On, checks: Checks<'_>) -> Self {
        let unsafe_local = if matches!(checks, Checks::Unsafe) { "true" } else { "false" };
        let environment =
            [("SIGNALBOX_SANDBOX__UNSAFE_LOCAL", unsafe_local), ("SIGNALBOX_TEST_SECRET", SECRET)];
        let mut system = System::with_environment(on, CHECK, 2, &environment).await;
        // The attacker even has the program of the server.
        let (program, place) = match checks {
            Checks::InContainers(attacked) | Checks::ByEngine(attacked, _) => {
                (attacked.program.clone(), None)
            }
            _ => shown_program(),
        };
        let shown = program.display().to_string();
        let mut config = format!("[sandbox]\nread_only_paths = [{shown:?}]\n");
        let containers = |attacked: &Attacked| {
            let image = attacked.image.name();
            format!("[sandbox]\nbackend = \"container\"\ncontainer_image = {image:?}\n")
        };
        let mut agent = None;
        match checks {
            Checks::Isolated | Checks::Unsafe => (),
            Checks::ByAgent => {
                let started = agent.insert(Agent::start(&program, &config));
                let socket = started.socket().display().to_string();
                config = format!("[sandbox]\nbackend = \"agent\"\nagent_socket = {socket:?}\n");
            }
            Checks::InContainers(attacked) => {
                config = format!("{}container_engine = \"podman\"\n", containers(attacked));
            }
            Checks::ByEngine(attacked, service) => {
                config = format!("{}container_host = {:?}\n", containers(attacked), service.host());
            }
        }
        std::fs::write(system.path("signalbox.toml"), config).expect("written");
        system.terminate();
        system.start().await;
        let head = system.git("bare.git", &["rev-parse", "main"]);
        let by_engine = matches!(checks, Checks::ByEngine(..));
        Self { system, head, attacks: Cell::new(0), program, agent, by_engine, _place: place }
    }

    /// The folders of the checks that run.
    fn jobs(&self) -> Vec<PathBuf> {
        jobs_in(&self.system.path("data/checks/other"))
    }

    /// The folders in which they run.
    fn running(&self) -> Vec<PathBuf> {
        match &self.agent {
            Some(agent) => jobs_in(&agent.folder.path().join("data/checks")),
            None => self.jobs(),
        }
    }

    /// The containers of an engine that run checks.
    fn containers(&self) -> Vec<String> {
        if !self.by_engine {
            return Vec::new();
        }
        let place = self.system.path("data/checks/engine-place");
        let Ok(place) = std::fs::read_to_string(place) else { return Vec::new() };
        let place = format!("label=signalbox.place={place}");
        let list = ["ps", "--quiet", "--filter", &place, "--filter", "status=running"];
        text(&podman(&list).expect("Podman")).lines().map(ToOwned::to_owned).collect()
    }

    /// Waits until a check runs that is none of these, and returns it: its folder, and its
    /// container in an engine.
    pub(super) async fn started(&self, others: &Started) -> Started {
        let new = || Started {
            jobs: new(self.jobs(), &others.jobs),
            running: new(self.running(), &others.running),
            containers: new(self.containers(), &others.containers),
        };
        let is_one = async |_: &System| {
            let new = new();
            !new.running.is_empty() && new.containers.is_empty() != self.by_engine
        };
        self.system.until("a check runs", is_one).await;
        new()
    }

    /// Opens a pull request whose check waits until it is released, then attacks, and fails; returns
    /// what it printed.
    pub(super) async fn attack(&self, script: &str) -> String {
        self.attack_on("main", script).await
    }

    pub(super) async fn attack_on(&self, branch: &str, script: &str) -> String {
        let system = &self.system;
        let known = format!(
            "BARE='{}' DATA='{}' DATABASE='{}' SIGNALBOX='{}' SERVER={} URL={}\n",
            system.path("bare.git").display(),
            system.path("data").display(),
            system.database(),
            self.program.display(),
            system.server_id(),
            system.url(),
        );
        // One pipe for both: of two, the pieces of a line may be apart.
        let attack = format!("exec 2>&1\n{WAIT}{known}{script}\nexit 1\n");
        self.attacks.set(self.attacks.get() + 1);
        let name = format!("attack-{}", self.attacks.get());
        let others =
            Started { jobs: self.jobs(), running: self.running(), containers: self.containers() };
        let pr = system.pull_request_on(branch, &name, &[("attack.sh", &attack)]);
        let body = json!({ "pr": { "number": pr }, "targetBranch": branch });
        system.call("submitPullRequest", body.clone()).await;
        let check = self.started(&others).await;
        check.release();
        let failed = async |system: &System| {
            system.call("getSubmittedPullRequest", body.clone()).await["state"] == "FAILED"
        };
        system.until("the attack ended", failed).await;
        let job = check.jobs[0].file_name().expect("a name").to_string_lossy().into_owned();
        let run = job.strip_suffix("-0").expect("the id of the run");
        system.get(&format!("/v1/testRuns/{run}/checks/test/output")).await
    }

    pub(super) fn moved(&self) -> bool {
        self.system.git("bare.git", &["rev-parse", "main"]) != self.head
    }

    /// How many tokens there are.
    pub(super) fn tokens(&self) -> usize {
        self.system.run(&["token", "list", "--org", "acme"]).lines().count()
    }

    /// The server still works: a pull request is merged.
    pub(super) async fn works(&self) {
        let pr = self.system.pull_request("honest", &[("honest.txt", "honest\n")]);
        self.system.submit(pr).await;
        self.system.until_state(pr, "MERGED").await;
    }
}

/// Checks that have started.
#[derive(Default)]
pub(super) struct Started {
    /// Their folders at the server.
    jobs: Vec<PathBuf>,
    /// The folders in which they run, or from which they are sent.
    pub(super) running: Vec<PathBuf>,
    /// The containers in which an engine runs them.
    containers: Vec<String>,
}

impl Started {
    /// Lets the first continue, which waits.
    pub(super) fn release(&self) {
        let Some(container) = self.containers.first() else {
            return std::fs::write(self.running[0].join("checkout/go"), "").expect("written");
        };
        let touch = ["exec", container, "/usr/bin/touch", "/checkout/go"];
        let touched = podman(&touch).expect("Podman");
        assert!(touched.status.success(), "{touched:?}");
    }
}

fn new<T: PartialEq>(all: Vec<T>, others: &[T]) -> Vec<T> {
    all.into_iter().filter(|it| !others.contains(it)).collect()
}

fn jobs_in(folder: &Path) -> Vec<PathBuf> {
    let jobs = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|job| job.path());
    jobs.filter(|job| job.join("checkout/attack.sh").exists()).collect()
}

/// An image with what the attacks use.
#[derive(Debug)]
pub(super) struct Attacked {
    image: Image,
    /// The server's, in the image.
    program: PathBuf,
    _place: Option<TempDir>,
}

impl Attacked {
    pub(super) fn new(name: &str) -> Option<Self> {
        let used =
            ["bash", "env", "find", "git", "grep", "nohup", "readlink", "setsid", "tr", "wc"];
        let used = used.map(|name| Path::new("/usr/bin").join(name));
        let (program, place) = shown_program();
        let further: Vec<&Path> = used.iter().chain([&program]).map(PathBuf::as_path).collect();
        let image = Image::new(name, &further);
        if image.is_none() {
            not_tested("Podman does not run containers here");
        }
        Some(Self { image: image?, program, _place: place })
    }
}

/// The server's program where a sandbox can show it: a sandbox has a `/tmp` of its own.
fn shown_program() -> (PathBuf, Option<TempDir>) {
    let built = program();
    if !built.starts_with("/tmp") {
        return (built, None);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut folders = [Some(PathBuf::from("/opt")), home].into_iter().flatten();
    let place = folders.find_map(|it| TempDir::with_prefix_in("signalbox", it).ok());
    let place = place.expect("a folder outside of /tmp");
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).expect("opened");
    let copy = place.path().join("signalbox");
    std::fs::copy(built, &copy).expect("a copy");
    (copy, Some(place))
}
