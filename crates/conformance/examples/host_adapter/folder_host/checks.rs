//! The checks runner: runs scripts of the target on the candidate's files.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{
    CheckOutput, ChecksJob, ChecksRunner, ChecksSink, HostError, SinkClosed,
};
use signalbox_domain::queue::{CheckConclusion, CheckReport, CheckStatus};
use signalbox_domain::time::Timestamp;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::FolderHost;
use super::git::Git;
use super::host::CHECKS;

/// Runs the checks of a [`FolderHost`]'s repositories.
pub(crate) struct FolderChecks(Arc<FolderHost>);

/// A running script; dropping it kills the script and its child processes.
struct Script {
    child: Child,
    group: Option<u32>,
}

impl Script {
    fn start(text: &str, folder: &Path) -> std::io::Result<Self> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(text).current_dir(folder).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn()?;
        Ok(Self { group: child.id(), child })
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let mut kill = std::process::Command::new("kill");
            let kill = kill.args(["-KILL", "--", &format!("-{group}")]).stderr(Stdio::null());
            // It fails if the processes have already exited.
            let _nothing_left = kill.status();
        }
    }
}

fn unavailable(error: &std::io::Error) -> HostError {
    HostError::Unavailable { words: error.to_string() }
}

fn now() -> Timestamp {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    Timestamp::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn report(name: &str, ended: Option<CheckConclusion>, summary: Option<&str>) -> Vec<CheckReport> {
    let status = if ended.is_some() { CheckStatus::Completed } else { CheckStatus::InProgress };
    vec![CheckReport {
        name: name.to_owned(),
        status,
        conclusion: ended,
        url: String::new(),
        summary: summary.map(ToOwned::to_owned),
        at: now(),
        excused: Vec::new(),
    }]
}

impl FolderChecks {
    /// Creates a runner for the repositories of a host.
    pub(crate) const fn new(host: Arc<FolderHost>) -> Self {
        Self(host)
    }

    fn script(git: &Git, at: &Sha, name: &str) -> Result<Option<String>, HostError> {
        if name.contains('/') {
            return Ok(None);
        }
        git.find(&["show", &format!("{at}:{CHECKS}/{name}")])
    }

    /// Runs one check; the inner error means that the sink is closed.
    async fn run_one(
        &self,
        job: &ChecksJob,
        name: &str,
        sink: &dyn ChecksSink,
    ) -> Result<Result<(), SinkClosed>, HostError> {
        let git = self.0.git(&job.repository)?;
        let Some(text) = Self::script(&git, &job.checks.config_from, name)? else {
            let summary = format!("{CHECKS}/{name} is not on the target branch");
            let failed = report(name, Some(CheckConclusion::Failure), Some(&summary));
            return Ok(sink.report(failed).await);
        };
        let folder = TempDir::new().map_err(|error| unavailable(&error))?;
        let files = folder.path().join("files");
        std::fs::create_dir(&files).map_err(|error| unavailable(&error))?;
        git.check_out(&job.checks.candidate.sha, &files)?;
        if sink.report(report(name, None, None)).await.is_err() {
            return Ok(Err(SinkClosed));
        }
        let mut script = Script::start(&text, &files).map_err(|error| unavailable(&error))?;
        let output = script.child.stdout.take();
        let printed = async {
            let mut text = String::new();
            if let Some(mut output) = output {
                use tokio::io::AsyncReadExt as _;
                let _read = output.read_to_string(&mut text).await;
            }
            text
        };
        let done = async { tokio::join!(printed, script.child.wait()) };
        let (text, status) = tokio::select! {
            done = done => done,
            () = sink.closed() => return Ok(Err(SinkClosed)),
        };
        let succeeded = status.map_err(|error| unavailable(&error))?.success();
        let conclusion =
            if succeeded { CheckConclusion::Success } else { CheckConclusion::Failure };
        let (org, run) = (job.repository.org, job.checks.run);
        let output = CheckOutput { org, run, check: name.to_owned(), text, at: now() };
        if sink.output(output).await.is_err() {
            return Ok(Err(SinkClosed));
        }
        Ok(sink.report(report(name, Some(conclusion), None)).await)
    }
}

#[async_trait]
impl ChecksRunner for FolderChecks {
    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError> {
        for name in &job.checks.required {
            if self.run_one(job, name, sink).await?.is_err() {
                break;
            }
        }
        Ok(())
    }
}
