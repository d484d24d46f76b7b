//! The sandbox of one machine: bubblewrap, under a supervisor.

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
use crate::supervisor::{Isolation, SUPERVISE, free_space};
use crate::users::UserId;
use crate::{
    Backend, Ended, Job, JobFolder, NotReady, NotRun, Output, Sandbox, SandboxSettings, folder,
    leftovers, process,
};

/// What to do without a sandbox.
const OTHERWISE: &str = "`sandbox.unsafe_local = true` would run checks with all rights of the \
                         server";
/// What to do where bubblewrap is not there.
const MISSING: &str = "bubblewrap is not installed: install it (apt install bubblewrap)";
/// What to do where no check may run.
const EXTERNAL_ONLY: &str = "this server runs no checks, because sandbox.backend is none: declare \
                             the check with external = true";
/// How long the first command in a sandbox may take.
const PATIENCE: Duration = Duration::from_secs(30);
const MIB: u64 = 1024 * 1024;

/// Runs checks on this machine, each isolated by bubblewrap and under a supervisor, which leaves
/// none of its processes behind.
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

    /// Kills the processes that a crashed server has left running in a folder of jobs, and removes
    /// what is in it. For the start of the only server that uses the folder.
    pub fn sweep(folder: &Path) {
        let left = leftovers::kill_marked(folder);
        if left > 0 {
            tracing::warn!(
                left,
                "could not end the left-over check processes of an earlier server"
            );
        }
        let Ok(jobs) = std::fs::read_dir(folder) else { return };
        for job in jobs.flatten() {
            crate::clear(&job.path());
        }
    }

    /// Runs a command that does nothing, in a sandbox as every other.
    async fn try_out(&self) -> Result<(), NotReady> {
        let failed = |what: &str, error: String| NotReady(format!("{what}: {error}; {OTHERWISE}"));
        let place = tempfile::tempdir().map_err(|error| failed("no folder", error.to_string()))?;
        let folder = JobFolder::new(&place.path().join("probe"));
        let folder = folder.map_err(|error| failed("no folder", error.to_string()))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let job = Job {
            run: vec!["true".to_owned()],
            environment: vec![("PATH".to_owned(), path)],
            time: PATIENCE,
            hidden: Vec::new(),
        };
        let (_never, mut stopped) = watch::channel(false);
        let output = Output::default();
        // A full disk says nothing about the sandbox, and the probe may be on another disk than checks.
        let settings = SandboxSettings { keep_free_mib: 0, ..self.settings.clone() };
        let probe = Self::new(settings, self.supervisor.clone(), self.hidden.clone());
        let ended = probe.run(job, &folder, &mut stopped, &output).await;
        folder.clear().await;
        match ended {
            Ok(Ended::Exited(status)) if status.success() => Ok(()),
            Ok(ended) => {
                Err(failed("a check that does nothing ended in the sandbox", ended.words()))
            }
            Err(NotRun::Program(error) | NotRun::Machine(error)) => Err(failed(
                "bubblewrap is installed but does not work here; this user needs user namespaces, \
                 which a container or a systemd unit may forbid",
                error.to_string(),
            )),
        }
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

    /// The supervisor of a job that runs as an identity, or without isolation as the server.
    fn command(
        &self,
        job: &Job,
        folder: &JobFolder,
        isolated: Option<(Identity, PathBuf)>,
    ) -> Command {
        let mut command = Command::new(&self.supervisor);
        command.arg(SUPERVISE).arg(folder.path());
        // A server that trusts its checks waits for a full disk itself.
        let free = isolated.as_ref().map_or(0, |_| self.settings.keep_free_mib);
        command.args([self.settings.memory_mib.to_string(), free.to_string()]);
        command.env_clear().envs(job.environment.iter().map(|(name, value)| (name, value)));
        if let Some((identity, program)) = isolated {
            let (folder, run) = (folder.path(), &job.run);
            let arguments = bubblewrap::arguments(&self.settings, identity, folder, run);
            command.arg(Isolation::Bubblewrap.as_str()).arg(program).args(arguments);
            // What is outside of the sandbox starts nothing from the checkout.
            command.current_dir("/");
            command.env("HOME", bubblewrap::HOME).env("TMPDIR", bubblewrap::TMP);
        } else {
            command.arg(Isolation::None.as_str()).args(&job.run).current_dir(folder.checkout());
            command.env("HOME", folder.path().join("home"));
            command.env("TMPDIR", folder.path().join("tmp"));
        }
        command
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn name(&self) -> &'static str {
        match (self.settings.backend, self.settings.unsafe_local) {
            (Backend::None, _) => "none",
            (Backend::Auto | Backend::Bubblewrap, true) => "unsafe_local",
            (Backend::Auto | Backend::Bubblewrap, false) => "bubblewrap",
        }
    }

    async fn ready(&self) -> Result<(), NotReady> {
        if self.settings.backend == Backend::None {
            return Err(NotReady(EXTERNAL_ONLY.to_owned()));
        }
        if self.settings.unsafe_local || self.works.load(Ordering::SeqCst) {
            return Ok(());
        }
        for program in ["/usr/bin/prlimit", "/usr/bin/setpriv"] {
            if !is_program(Path::new(program)) {
                return Err(NotReady(format!("{program} is missing: install util-linux")));
            }
        }
        if installed(bubblewrap::PROGRAM).await.is_none() {
            return Err(NotReady(format!("{MISSING}; {OTHERWISE}")));
        }
        if let Some((hidden, by)) = bubblewrap::exposed(&self.settings, &self.hidden) {
            return Err(NotReady(exposed(&hidden, &by)));
        }
        self.try_out().await?;
        self.works.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn run(
        &self,
        job: Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ended, NotRun> {
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
        let identity = match &user {
            Some(user) => Some(Identity::Other(user.get())),
            None => is_isolated.then(|| Identity::Own(geteuid().as_raw())),
        };
        if let Some(identity) = identity {
            Self::prepare(folder, identity).await?;
        }
        let isolated = match identity {
            Some(identity) => {
                let program = installed(bubblewrap::PROGRAM).await;
                let missing = || NotRun::Machine(std::io::Error::other(MISSING));
                Some((identity, program.ok_or_else(missing)?))
            }
            None => None,
        };
        let command = self.command(&job, folder, isolated);
        let most = u64::from(self.settings.output_mib) * MIB;
        let ended = process::run(command, job.time, most, stopped, output).await;
        match ended {
            // All that was printed until then came from the sandbox.
            Err(NotRun::Machine(error)) if is_isolated && !output.is_empty() => {
                let said = output.last_line();
                Err(NotRun::Machine(std::io::Error::other(format!("{error}: {said}"))))
            }
            ended => ended,
        }
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
async fn installed(program: &'static str) -> Option<PathBuf> {
    let look = move || {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(program)).find(|path| is_program(path))
    };
    spawn_blocking(look).await.ok().flatten()
}
