//! The sandbox of one machine: bubblewrap or a container, under a supervisor.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::geteuid;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::bubblewrap::{self, Identity};
use crate::container::{Container, Engine};
use crate::supervisor::{Isolation, SUPERVISE, free_space};
use crate::users::UserId;
use crate::{
    Backend, Ended, Job, JobFolder, NotReady, NotRun, Output, Ran, Ready, Sandbox, SandboxSettings,
    folder, process, reports,
};

/// What to do without a sandbox.
const OTHERWISE: &str = "; `sandbox.unsafe_local = true` would run checks with all rights of this \
                         user";
/// What to do where bubblewrap is not there.
const MISSING: &str = "bubblewrap is not installed: install it (apt install bubblewrap)";
/// What to do where no check may run.
const EXTERNAL_ONLY: &str = "this server runs no checks, because sandbox.backend is none: declare \
                             the check with external = true";
/// How long the first command in a sandbox may take.
const PATIENCE: Duration = Duration::from_secs(30);
const MIB: u64 = 1024 * 1024;

/// What isolates a job.
enum Walls {
    /// Nothing.
    None,
    /// Bubblewrap, which is this program.
    Bubblewrap(Identity, PathBuf),
    /// A container.
    Container(Identity, Engine, Container),
}

/// Runs checks on this machine, each isolated and under a supervisor, which leaves none of its
/// processes behind.
pub struct LocalSandbox {
    settings: SandboxSettings,
    supervisor: PathBuf,
    hidden: Vec<PathBuf>,
    works: AtomicBool,
}

impl LocalSandbox {
    /// A sandbox with these settings. `supervisor` is a program that calls
    /// [`supervise`](crate::supervise) first of all, such as this one. `hidden` are paths that no
    /// check may see: the data folder, the database, files with keys.
    pub fn new(settings: SandboxSettings, supervisor: PathBuf, hidden: Vec<PathBuf>) -> Self {
        Self { settings, supervisor, hidden, works: AtomicBool::new(false) }
    }

    /// Runs a command that does nothing, in a sandbox as every other.
    async fn try_out(&self) -> Result<(), NotReady> {
        let otherwise = if self.settings.backend.has_images() { "" } else { OTHERWISE };
        let failed = |what: &str, error: String| NotReady(format!("{what}: {error}{otherwise}"));
        let place = tempfile::tempdir().map_err(|error| failed("no folder", error.to_string()))?;
        let folder = JobFolder::new(&place.path().join("probe"));
        let folder = folder.map_err(|error| failed("no folder", error.to_string()))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let job = Job {
            run: vec!["true".to_owned()],
            environment: vec![("PATH".to_owned(), path)],
            time: PATIENCE,
            hidden: Vec::new(),
            reports: Vec::new(),
        };
        let (_never, mut stopped) = watch::channel(false);
        let output = Output::default();
        // A full disk says nothing about the sandbox, and the probe may be on another disk than checks.
        let settings = SandboxSettings { keep_free_mib: 0, ..self.settings.clone() };
        let probe = Self::new(settings, self.supervisor.clone(), self.hidden.clone());
        let ran = probe.run_once(job, &folder, &mut stopped, &output).await;
        folder.clear().await;
        let fails = if self.settings.backend.has_images() {
            "the container engine is installed but does not work here"
        } else {
            "bubblewrap is installed but does not work here; this user needs user namespaces, \
             which a container or a systemd unit may forbid"
        };
        match ran.map(|ran| ran.ended) {
            Ok(Ended::Exited(status)) if status.success() => Ok(()),
            Ok(ended) => {
                Err(failed("a check that does nothing ended in the sandbox", ended.words()))
            }
            Err(NotRun::Program(error)) if self.settings.backend.has_images() => {
                Err(failed("the image has no program `true`", error.to_string()))
            }
            Err(NotRun::Program(error) | NotRun::Machine(error)) => {
                Err(failed(fails, error.to_string()))
            }
        }
    }

    /// Whether what the settings name is installed, before anything is tried out.
    async fn installed(&self) -> Result<(), NotReady> {
        if self.settings.backend.has_images() {
            let engine = Engine::find(&self.settings).map_err(NotReady)?;
            return engine.has_image(&self.settings.container_image).await.map_err(NotReady);
        }
        for program in ["/usr/bin/prlimit", "/usr/bin/setpriv"] {
            if !is_program(Path::new(program)) {
                return Err(NotReady(format!("{program} is missing: install util-linux")));
            }
        }
        if find(bubblewrap::PROGRAM).await.is_none() {
            return Err(NotReady(format!("{MISSING}{OTHERWISE}")));
        }
        Ok(())
    }

    /// What is ready.
    fn ready_by(&self) -> Ready {
        let by = match self.settings.backend {
            _ if self.settings.unsafe_local => "unsafe_local",
            Backend::Container => Engine::find(&self.settings).map_or("container", |it| it.name()),
            Backend::Auto | Backend::Bubblewrap | Backend::Agent | Backend::None => "bubblewrap",
        };
        let network = self.settings.unsafe_local || self.settings.network;
        Ready { by: by.to_owned(), network }
    }

    /// Why a job cannot begin: its disk is as full as one may make it.
    fn too_full(&self, folder: &JobFolder) -> Option<String> {
        let least = self.settings.keep_free_mib;
        let free = free_space(folder.path().as_os_str())?;
        (free < u64::from(least))
            .then(|| format!("the disk has {free} MiB free, and sandbox.keep_free_mib is {least}"))
    }

    /// Prepares the folder of a job for a user.
    async fn prepare(folder: &JobFolder, identity: Identity) -> std::io::Result<()> {
        let path = folder.path().to_owned();
        let prepared = spawn_blocking(move || {
            bubblewrap::write_names(&path, identity)?;
            match identity {
                Identity::Own(_) => Ok(()),
                Identity::Other(user) => folder::hand_over(&path, user),
            }
        });
        prepared.await.map_err(std::io::Error::other)?
    }

    /// What isolates the job in a folder.
    async fn walls(&self, user: Option<&UserId>, folder: &JobFolder) -> Result<Walls, NotRun> {
        if self.settings.unsafe_local {
            return Ok(Walls::None);
        }
        let own = || Identity::Own(geteuid().as_raw());
        let identity = user.map_or_else(own, |user| Identity::Other(user.get()));
        let missing = |words: String| NotRun::Machine(std::io::Error::other(words));
        Self::prepare(folder, identity).await?;
        if self.settings.backend.has_images() {
            let engine = Engine::find(&self.settings).map_err(missing)?;
            let container = Container::of(engine.clone(), folder.path());
            return Ok(Walls::Container(identity, engine, container));
        }
        let program = find(bubblewrap::PROGRAM).await;
        let program = program.ok_or_else(|| missing(MISSING.to_owned()))?;
        Ok(Walls::Bubblewrap(identity, program))
    }

    /// The supervisor of a job.
    fn command(&self, job: &Job, folder: &JobFolder, walls: &Walls) -> Command {
        let SandboxSettings { memory_mib, keep_free_mib, .. } = self.settings;
        // A server that trusts its checks waits for a full disk itself; an engine limits memory.
        let (isolation, memory, free) = match walls {
            Walls::None => (Isolation::None, memory_mib, 0),
            Walls::Bubblewrap(..) => (Isolation::Bubblewrap, memory_mib, keep_free_mib),
            Walls::Container(..) => (Isolation::Container, 0, keep_free_mib),
        };
        let mut command = Command::new(&self.supervisor);
        command.arg(SUPERVISE).arg(folder.path());
        command.args([memory.to_string(), free.to_string()]).arg(isolation.as_str());
        // What is outside of the sandbox starts nothing from the checkout.
        command.env_clear().current_dir("/");
        let variables = job.environment.iter().map(|(name, value)| (name, value));
        let path = folder.path();
        match walls {
            Walls::None => {
                command.envs(variables).args(&job.run).current_dir(folder.checkout());
                command.env("HOME", path.join("home")).env("TMPDIR", path.join("tmp"));
            }
            Walls::Bubblewrap(identity, program) => {
                let arguments = bubblewrap::arguments(&self.settings, *identity, path, &job.run);
                command.envs(variables).arg(program).args(arguments);
                command.env("HOME", bubblewrap::HOME).env("TMPDIR", bubblewrap::TMP);
            }
            Walls::Container(identity, engine, container) => {
                let arguments = container.arguments(&self.settings, *identity, path, job);
                command.envs(Container::passed(job)).envs(Engine::environment());
                command.arg(engine.program()).args(arguments);
            }
        }
        command
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    async fn ready(&self) -> Result<Ready, NotReady> {
        if self.settings.backend == Backend::None {
            return Err(NotReady(EXTERNAL_ONLY.to_owned()));
        }
        if self.settings.unsafe_local || self.works.load(Ordering::SeqCst) {
            return Ok(self.ready_by());
        }
        self.installed().await?;
        if let Some((hidden, by)) = bubblewrap::exposed(&self.settings, &self.hidden) {
            return Err(NotReady(exposed(&hidden, &by)));
        }
        self.try_out().await?;
        self.works.store(true, Ordering::SeqCst);
        Ok(self.ready_by())
    }

    async fn run(
        &self,
        job: Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun> {
        match self.run_once(job, folder, stopped, output).await {
            // Engines exit alike for a program that is not there and for a runtime that is broken.
            Err(NotRun::Program(error)) if self.settings.backend.has_images() => {
                self.works.store(false, Ordering::SeqCst);
                match self.ready().await {
                    Ok(_) => Err(NotRun::Program(error)),
                    Err(refused) => Err(NotRun::Machine(std::io::Error::other(refused.0))),
                }
            }
            ran => ran,
        }
    }

    fn sweep(&self, folder: &Path) {
        if self.settings.backend.has_images()
            && let Ok(engine) = Engine::find(&self.settings)
        {
            engine.sweep(folder);
        }
        folder::clear_jobs(folder);
    }
}

impl LocalSandbox {
    /// Runs a job, and takes the engine of containers at its word.
    async fn run_once(
        &self,
        job: Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun> {
        if self.settings.backend == Backend::None {
            return Err(NotRun::Machine(std::io::Error::other(EXTERNAL_ONLY)));
        }
        let is_isolated = !self.settings.unsafe_local;
        if is_isolated && let Some((hidden, by)) = bubblewrap::exposed(&self.settings, &job.hidden)
        {
            return Err(NotRun::Machine(std::io::Error::other(exposed(&hidden, &by))));
        }
        if is_isolated && let Some(words) = self.too_full(folder) {
            return Err(NotRun::Machine(std::io::Error::other(words)));
        }
        let as_root = is_isolated && geteuid().is_root();
        // The id is free again when no process of the job is left.
        let user = as_root.then(|| UserId::take(self.settings.first_user_id));
        let walls = self.walls(user.as_ref(), folder).await?;
        // After the files were given to that user, which changes them.
        let before = {
            let (checkout, patterns) = (folder.checkout(), job.reports.clone());
            spawn_blocking(move || reports::before(&checkout, &patterns)).await.unwrap_or_default()
        };
        let command = self.command(&job, folder, &walls);
        let most = u64::from(self.settings.output_mib) * MIB;
        let ended = process::run(command, job.time, most, stopped, output).await;
        let ended = match walls {
            Walls::Container(_, _, container) => container.finish(ended, &self.settings).await,
            Walls::None | Walls::Bubblewrap(..) => ended,
        };
        let ended = match ended {
            // All that was printed until then came from the sandbox.
            Err(NotRun::Machine(error)) if is_isolated && !output.is_empty() => {
                let said = output.last_line();
                return Err(NotRun::Machine(std::io::Error::other(format!("{error}: {said}"))));
            }
            ended => ended?,
        };
        let (checkout, patterns) = (folder.checkout(), job.reports);
        let found = spawn_blocking(move || reports::collect(&checkout, &patterns, &before));
        // Open files can be read after the folder is removed.
        Ok(Ran { ended, reports: found.await.unwrap_or_default() })
    }
}

fn exposed(hidden: &Path, by: &Path) -> String {
    let (hidden, by) = (hidden.display(), by.display());
    format!("checks would see {hidden}, because they see {by}: move one of them")
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Where a program is, in the folders of `PATH`. A folder without an absolute path would be one of the
/// working directory.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let folders = folders.iter().filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(|path| is_program(path))
}

async fn find(program: &'static str) -> Option<PathBuf> {
    spawn_blocking(move || installed(program)).await.ok().flatten()
}
