//! The seam between the server and what runs checks.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::watch;

use crate::remote::EngineSandbox;
use crate::{
    AgentSandbox, Backend, Collected, Ended, JobFolder, LocalSandbox, NotRun, Output,
    SandboxSettings,
};

/// One check of one candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The program and its arguments; no shell reads them.
    pub run: Vec<String>,
    /// Its variables, beside `HOME`, `TMPDIR` and the mark of its processes.
    pub environment: Vec<(String, OsString)>,
    /// The longest that it may take.
    pub time: Duration,
    /// Paths of this machine that it must not see, such as its bare repository. A sandbox that
    /// would show one refuses the job.
    pub hidden: Vec<PathBuf>,
    /// Which files of its checkout are reports of tests, as
    /// [patterns](crate::report_pattern_problem).
    pub reports: Vec<String>,
}

/// What runs checks, when it can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// What isolates them, in a few words.
    pub by: String,
    /// Whether they share the network of the machine.
    pub network: bool,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = if self.network { "with" } else { "without" };
        write!(f, "checks run in {} {network} network", self.by)
    }
}

/// Why no check runs here.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("checks are refused: {0}")]
pub struct NotReady(pub String);

/// The result of a job, and the reports that it left.
pub struct Ran {
    /// Its end.
    pub ended: Ended,
    /// Its reports.
    pub reports: Collected,
}

/// Runs checks: each in the folder that was prepared for it, and without a way out of it.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Whether checks can run. The error says what is missing and what to do. A success is
    /// remembered; after a failure the next call looks again.
    async fn ready(&self) -> Result<Ready, NotReady>;

    /// Runs a job in a folder whose `checkout` is its working directory, until it ends, has had its
    /// time, breaks a limit, or `stopped` becomes true. What it prints goes to `output`. When this
    /// returns, none of its processes is left; when the future is dropped, they end.
    async fn run(
        &self,
        job: Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun>;

    /// Ends what a crashed server has left running in a folder of jobs, and removes what is in it.
    /// For the start of the only server that uses the folder.
    fn sweep(&self, folder: &Path);
}

/// The sandbox of these settings. `supervisor` is a program that calls
/// [`supervise`](crate::supervise) first of all, such as this one. `hidden` are paths that no check may
/// see: the data folder, the database, files with keys.
pub fn sandbox(
    settings: SandboxSettings,
    supervisor: PathBuf,
    hidden: Vec<PathBuf>,
) -> Arc<dyn Sandbox> {
    match settings.backend {
        Backend::Agent => Arc::new(AgentSandbox::new(settings.agent_socket)),
        Backend::Container if !settings.container_host.is_empty() => {
            Arc::new(EngineSandbox::new(settings))
        }
        Backend::Auto | Backend::Bubblewrap | Backend::Container | Backend::None => {
            Arc::new(LocalSandbox::new(settings, supervisor, hidden))
        }
    }
}
