//! A check in a container of Podman or Docker: the arguments of the engine, and the state of the
//! container afterwards.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use serde::Deserialize;
use tokio::process::Command;

use crate::bubblewrap::{CHECKOUT, HOME, Identity, TMP};
use crate::leftovers::MARK;
use crate::{Ended, Job, NotRun, SandboxSettings};

/// The engines, in the order in which they are tried.
const ENGINES: [&str; 2] = ["podman", "docker"];
/// The label of a container: the folder of its jobs.
const LABEL: &str = "signalbox.jobs";
/// The variables by which an engine finds its settings.
pub(crate) const OF_ENGINES: [&str; 12] = [
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "HOME",
    "PATH",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];
/// The command that removes a container, with what runs in it.
const REMOVE: [&str; 3] = ["rm", "--force", "--volumes"];
/// How long an engine may take for what is not a check.
const PATIENCE: Duration = Duration::from_mins(1);
/// The most open files of a process, if the server may have as many.
const OPEN_FILES: u64 = 1_048_576;
/// The exit codes of an engine for a command that it could not run, and for one that is not there.
const NOT_RUNNABLE: [i32; 2] = [126, 127];
/// The exit code of a command that was killed.
const KILLED: i32 = 137;
/// Jobs of one server may have equal names, one after the other.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The program of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Engine {
    name: &'static str,
    program: PathBuf,
}

/// The container of one job. Dropping it removes it, with what still runs in it.
pub(crate) struct Container {
    engine: Engine,
    name: String,
    is_removed: bool,
}

/// What an engine reports about a container.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    status: String,
    #[serde(default, rename = "OOMKilled")]
    oom_killed: bool,
}

impl Engine {
    /// The engine of the settings, or else the first one of this machine.
    pub(crate) fn find(settings: &SandboxSettings) -> Result<Self, String> {
        let wanted = settings.container_engine.as_str();
        let names = ENGINES.iter().copied().filter(|it| wanted == "auto" || wanted == *it);
        let found = names.clone().find_map(|name| Some((name, super::local::installed(name)?)));
        let found = found.map(|(name, program)| Self { name, program });
        found.ok_or_else(|| {
            let names: Vec<&str> = names.collect();
            format!(
                "no container engine is installed: install {} (apt install podman)",
                names.join(" or ")
            )
        })
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The environment in which it runs.
    pub(crate) fn environment() -> impl Iterator<Item = (&'static str, OsString)> {
        OF_ENGINES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
    }

    fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.env_clear().envs(Self::environment()).current_dir("/").stdin(Stdio::null());
        command
    }

    /// Whether the image of the settings is there. It is never pulled: what a check runs in changes
    /// only when the operator pulls another.
    pub(crate) async fn has_image(&self, image: &str) -> Result<(), String> {
        let inspect = ["image", "inspect", "--format", "{{json .Config.Volumes}}", image];
        let done = self.ask(&inspect).await.map_err(|error| error.to_string())?;
        if done.status.success() {
            let volumes = String::from_utf8_lossy(&done.stdout);
            if self.name == "docker" && !["null", "{}"].contains(&volumes.trim()) {
                // Podman can ignore them. They would be writable, and on another disk.
                return Err(format!("the image {image} has volumes: use one without, or podman"));
            }
            return Ok(());
        }
        let words = String::from_utf8_lossy(&done.stderr);
        let words = words.lines().next().unwrap_or_default().trim().to_owned();
        let name = self.name;
        Err(format!(
            "{name} has no image {image} ({words}): run `{name} pull {image}` as the user that runs \
             checks"
        ))
    }

    /// Runs a command that takes a moment.
    async fn ask(&self, arguments: &[&str]) -> io::Result<Output> {
        let mut command = Command::from(self.command());
        let done = command.args(arguments).kill_on_drop(true).output();
        tokio::time::timeout(PATIENCE, done).await.unwrap_or_else(|_| {
            let words = format!("{} does not answer", self.name);
            Err(io::Error::new(io::ErrorKind::TimedOut, words))
        })
    }

    /// Removes the containers of jobs of a folder.
    pub(crate) fn sweep(&self, folder: &Path) {
        let label = format!("label={LABEL}={}", folder.display());
        let found = self.command().args(["ps", "--all", "--quiet", "--filter", &label]).output();
        let found = found.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        for id in found.unwrap_or_default().split_whitespace() {
            note_removal(id, self.command().args(REMOVE).arg(id).output());
        }
    }
}

impl Container {
    /// The container of the job in a folder.
    pub(crate) fn of(engine: Engine, folder: &Path) -> Self {
        let words = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_plain = |it: &char| it.is_ascii_alphanumeric() || *it == '-';
        let words: String = words.chars().filter(is_plain).collect();
        // Jobs of two servers may have equal names, too.
        let (server, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = format!("signalbox-{server}-{number}-{words}");
        Self { engine, name, is_removed: false }
    }

    /// The arguments of the engine that run a job.
    pub(crate) fn arguments(
        &self,
        settings: &SandboxSettings,
        identity: Identity,
        folder: &Path,
        job: &Job,
    ) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        add(&[
            "run",
            "--name",
            &self.name,
            "--pull",
            "never",
            "--read-only",
            "--log-driver",
            "none",
        ]);
        add(&["--cap-drop", "all", "--security-opt", "no-new-privileges"]);
        let jobs = folder.parent().unwrap_or(folder);
        add(&["--label", &format!("{LABEL}={}", jobs.display())]);
        if !settings.network {
            add(&["--network", "none"]);
        }
        match identity {
            Identity::Own(id) if self.engine.name == "podman" => {
                add(&["--userns", "keep-id", "--user", &format!("{id}:{id}")]);
            }
            Identity::Own(id) | Identity::Other(id) => add(&["--user", &format!("{id}:{id}")]),
        }
        if settings.memory_mib > 0 {
            let memory = format!("{}m", settings.memory_mib);
            add(&["--memory", &memory, "--memory-swap", &memory]);
        }
        add(&["--pids-limit", &settings.processes.to_string(), "--ulimit", "core=0:0"]);
        // Engines raise these limits, which a server that has less may not.
        let files = getrlimit(Resource::Nofile).maximum.unwrap_or(OPEN_FILES).min(OPEN_FILES);
        let processes = u64::from(settings.processes);
        let processes = getrlimit(Resource::Nproc).maximum.unwrap_or(processes).min(processes);
        add(&["--ulimit", &format!("nofile={files}:{files}")]);
        if identity.is_other() {
            add(&["--ulimit", &format!("nproc={processes}:{processes}")]);
        }
        let home = format!("HOME={HOME}");
        add(&["--env", &home, "--env", &format!("TMPDIR={TMP}"), "--env", MARK]);
        for (name, _) in &job.environment {
            // Without its value, which other users of the machine could read.
            if !OF_ENGINES.contains(&name.as_str()) {
                add(&["--env", name]);
            }
        }
        if self.engine.name == "podman" {
            add(&["--image-volume", "ignore"]);
        }
        for (inner, shown) in [("tmp", TMP), ("home", HOME), ("checkout", CHECKOUT)] {
            args.extend(self.shown(&folder.join(inner), Path::new(shown), true));
        }
        for path in &settings.read_only_paths {
            args.extend(self.shown(path, path, false));
        }
        let image = settings.container_image.as_str();
        args.extend(["--workdir", CHECKOUT, "--entrypoint", "", image].map(OsString::from));
        args.extend(job.run.iter().map(OsString::from));
        args
    }

    /// Shows a folder of this machine in the container.
    fn shown(&self, from: &Path, to: &Path, writable: bool) -> [OsString; 2] {
        let words = |words: &[&OsStr]| words.iter().copied().collect::<OsString>();
        let (from, to) = (from.as_os_str(), to.as_os_str());
        if self.engine.name == "docker" {
            // With `--volume` Docker would make a folder that is missing.
            let end = if writable { "" } else { ",readonly" };
            let parts = ["type=bind,source=".as_ref(), from, ",target=".as_ref(), to, end.as_ref()];
            return ["--mount".into(), words(&parts)];
        }
        let end = if writable { ":rw,Z" } else { ":ro" };
        ["--volume".into(), words(&[from, ":".as_ref(), to, end.as_ref()])]
    }

    /// The variables of a job that the engine passes on.
    pub(crate) fn passed(job: &Job) -> impl Iterator<Item = (&str, &OsString)> {
        let of_job = job.environment.iter().map(|(name, value)| (name.as_str(), value));
        of_job.filter(|(name, _)| !OF_ENGINES.contains(name))
    }

    /// What the end of the engine's program means, by what the engine reports about the container; and
    /// removes the container.
    pub(crate) async fn finish(
        mut self,
        ended: Result<Ended, NotRun>,
        settings: &SandboxSettings,
    ) -> Result<Ended, NotRun> {
        let state = match &ended {
            Ok(Ended::Exited(_)) => self.state().await,
            _ => None,
        };
        self.remove().await;
        let Ok(Ended::Exited(status)) = ended else { return ended };
        match state {
            Some(state) if state.oom_killed => {
                let mib = settings.memory_mib;
                Ok(Ended::OverLimit(format!("it used more than {mib} MiB of memory")))
            }
            // Not every engine notices why the kernel ended it.
            Some(state)
                if state.status == "exited"
                    && status.code() == Some(KILLED)
                    && settings.memory_mib > 0 =>
            {
                let mib = settings.memory_mib;
                Ok(Ended::OverLimit(format!(
                    "it was killed, possibly because it used more than {mib} MiB of memory"
                )))
            }
            Some(state) if state.status == "exited" => Ok(Ended::Exited(status)),
            _ if status.code().is_some_and(|code| NOT_RUNNABLE.contains(&code)) => {
                let words = "it is not in the image, or cannot be run";
                Err(NotRun::Program(io::Error::other(words)))
            }
            _ => Err(NotRun::Machine(io::Error::other("could not start the container"))),
        }
    }

    async fn state(&self) -> Option<State> {
        let inspect = ["inspect", "--type", "container", "--format", "{{json .State}}", &self.name];
        let done = self.engine.ask(&inspect).await.ok()?;
        serde_json::from_slice(&done.stdout).ok()
    }

    async fn remove(&mut self) {
        let removed = self.engine.ask(&[&REMOVE[..], &[&self.name]].concat()).await;
        // Not before: a caller that is gone leaves it to the drop.
        self.is_removed = true;
        note_removal(&self.name, removed);
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let (engine, name) = (self.engine.clone(), self.name.clone());
        // Docker's daemon runs it on. The thread waits for the engine, which nothing else does.
        std::thread::spawn(move || {
            note_removal(&name, engine.command().args(REMOVE).arg(&name).output());
        });
    }
}

/// Reports a container that is still there; the next start of the server removes it.
fn note_removal(container: &str, removed: io::Result<Output>) {
    let error = match removed {
        Ok(done) if done.status.success() => return,
        Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    tracing::warn!(container, error, "could not remove the container of a check");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn line(engine: &'static str, settings: &SandboxSettings, identity: Identity) -> String {
        let engine = Engine { name: engine, program: PathBuf::from(engine) };
        let mut container = Container::of(engine, Path::new("/jobs/1-0"));
        container.is_removed = true;
        let job = Job {
            run: vec!["make".to_owned(), "test".to_owned()],
            environment: vec![
                ("PATH".to_owned(), "/server".into()),
                ("CI_KEY".to_owned(), "secret".into()),
            ],
            time: Duration::from_secs(1),
            hidden: Vec::new(),
            reports: Vec::new(),
        };
        let args = container.arguments(settings, identity, Path::new("/jobs/1-0"), &job);
        let words: Vec<_> = args.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    #[test]
    fn a_container_has_its_own_folders_and_no_rights() {
        let settings = SandboxSettings {
            container_image: "debian:13".to_owned(),
            ..SandboxSettings::default()
        };
        let line = line("podman", &settings, Identity::Other(60_801));
        for part in [
            "--pull never --read-only",
            "--cap-drop all --security-opt no-new-privileges",
            "--label signalbox.jobs=/jobs ",
            "--network none",
            "--user 60801:60801",
            "--memory 8192m --memory-swap 8192m --pids-limit 2048",
            "--volume /jobs/1-0/checkout:/checkout:rw,Z",
            "--env CI_KEY ",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(line.ends_with("--entrypoint  debian:13 make test"), "{line}");
        assert!(!line.contains("secret") && !line.contains("--env PATH"), "{line}");
    }

    #[test]
    fn an_ordinary_user_keeps_its_id_under_podman() {
        let settings = SandboxSettings { network: true, ..SandboxSettings::default() };
        let podman = line("podman", &settings, Identity::Own(1_000));
        assert!(podman.contains("--userns keep-id --user 1000:1000"), "{podman}");
        assert!(!podman.contains("--network"), "{podman}");
        let docker = line("docker", &settings, Identity::Own(1_000));
        assert!(docker.contains("--user 1000:1000") && !docker.contains("keep-id"), "{docker}");
        let mount = "--mount type=bind,source=/jobs/1-0/checkout,target=/checkout --";
        assert!(docker.contains(mount) && !docker.contains("--volume"), "{docker}");
    }
}
