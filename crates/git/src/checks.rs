//! The checks runner: runs the checks of the target branch's configuration on a candidate.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use signalbox_domain::flaky::Excuse;
use signalbox_domain::ports::{
    CheckOutput, CheckReports, ChecksJob, ChecksRunner, ChecksSink, Clock, HostError, LeftReports,
    SinkClosed,
};
use signalbox_domain::queue::{CheckConclusion, CheckReport, CheckStatus};
use signalbox_domain::time::Timestamp;
use signalbox_hosts::CONFIG_FILE;
use signalbox_sandbox::{Collected, Ended, Job, JobFolder, NotRun, Output, Sandbox};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;

use crate::checkout::{NotCheckedOut, check_out, unavailable};
use crate::config::{self, CheckConfig, RepositoryConfig};
use crate::git::Git;
use crate::host::PlainGitHost;

/// How often the output of a running check is stored, if there is more of it.
const SHOWN_EVERY: Duration = Duration::from_secs(2);

/// How checks are run.
#[derive(Clone, Debug)]
pub struct ChecksConfig {
    /// The folder for checkouts.
    pub work_dir: PathBuf,
    /// The default timeout of a check, in minutes.
    pub timeout_minutes: u32,
    /// Variables of the server's environment that checks get, beside the fixed ones.
    pub pass_env: Vec<String>,
    /// The server's own address, for links.
    pub public_url: String,
    /// How many commits a checkout has, the candidate among them; 0: all.
    pub clone_depth: u32,
}

/// Runs checks on this machine, each in a clean checkout and in a sandbox.
pub struct LocalChecksRunner {
    config: ChecksConfig,
    sandbox: Arc<dyn Sandbox>,
    host: Arc<PlainGitHost>,
    clock: Arc<dyn Clock>,
    reports: Arc<dyn CheckReports>,
}

/// Where the output of a running check is stored, and when it was last written there.
#[derive(Clone, Copy)]
struct Shown<'a> {
    sink: &'a dyn ChecksSink,
    written: Timestamp,
}

/// The outcome of a check, and its reports.
struct Ran {
    conclusion: CheckConclusion,
    summary: String,
    output: String,
    left: LeftReports,
}

/// The result of a check: the conclusion, a summary line, and its output.
struct Finished {
    conclusion: CheckConclusion,
    summary: String,
    output: String,
    excused: Vec<String>,
}

impl LocalChecksRunner {
    /// A runner for the repositories of that host, in that sandbox.
    pub fn new(
        mut config: ChecksConfig,
        sandbox: Arc<dyn Sandbox>,
        host: Arc<PlainGitHost>,
        clock: Arc<dyn Clock>,
        reports: Arc<dyn CheckReports>,
    ) -> Self {
        // Git and the checks are run in other folders, where a relative path means another place.
        if let Ok(absolute) = std::path::absolute(&config.work_dir) {
            config.work_dir = absolute;
        }
        Self { config, sandbox, host, clock, reports }
    }

    /// Kills the processes that a crashed server has left running, and removes its checkouts. For
    /// the start of the only server that uses the work folder.
    pub fn sweep_leftovers(&self) {
        self.sandbox.sweep(&self.config.work_dir);
    }

    fn report(
        &self,
        job: &ChecksJob,
        name: &str,
        status: CheckStatus,
        ended: Option<(CheckConclusion, String)>,
    ) -> CheckReport {
        let encoded: String = name
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            })
            .collect();
        let run = job.checks.run;
        let (conclusion, summary) = ended.unzip();
        CheckReport {
            name: name.to_owned(),
            status,
            conclusion,
            url: format!("{}/v1/testRuns/{run}/checks/{encoded}/output", self.config.public_url),
            summary,
            at: self.clock.now(),
            excused: Vec::new(),
        }
    }

    async fn run_all(
        &self,
        job: &ChecksJob,
        sink: &dyn ChecksSink,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), Stop> {
        // Nothing of a candidate is run, nor called failed, while there is no sandbox for it.
        if let Err(refused) = self.sandbox.ready().await {
            return Err(HostError::Unavailable { words: refused.to_string() }.into());
        }
        let git = self.host.git(&job.repository)?;
        let config = match config::read(&git, job.checks.config_from.as_str()).await? {
            Some(Ok(config)) => config,
            Some(Err(words)) => {
                // The queue names the required checks, and the file that defines them is invalid.
                let failed = |name: &String| {
                    let ended = Some((CheckConclusion::Failure, words.clone()));
                    self.report(job, name, CheckStatus::Completed, ended)
                };
                sink.report(job.checks.required.iter().map(failed).collect()).await?;
                return Ok(());
            }
            None => RepositoryConfig::default(),
        };
        let is_run_here = |check: &&CheckConfig| !check.external;
        let find = |name: &String| {
            config.checks.iter().filter(is_run_here).find(|check| check.name == *name)
        };
        let wanted = match job.checks.again.as_slice() {
            [] => job.checks.required.clone(),
            again => again.iter().map(|check| check.name.clone()).collect(),
        };
        let missing: Vec<CheckReport> = wanted
            .iter()
            .filter(|name| find(name).is_none())
            .map(|name| {
                let words = format!(
                    "no check named {name:?} is configured in {CONFIG_FILE} of the target branch"
                );
                let ended = Some((CheckConclusion::Failure, words));
                self.report(job, name, CheckStatus::Completed, ended)
            })
            .collect();
        if !missing.is_empty() {
            sink.report(missing).await?;
        }
        for (number, check) in wanted.iter().filter_map(find).enumerate() {
            let begun = self.report(job, &check.name, CheckStatus::InProgress, None);
            sink.report(vec![begun]).await?;
            // In place of the output of an earlier attempt.
            let nothing = self.output(job, check, String::new());
            let shown = Shown { sink, written: nothing.at };
            sink.output(nothing).await?;
            let result = self.run_one(job, &git, check, number, &mut stopped, shown).await?;
            let result = self.with_reports(job, &check.name, result).await;
            sink.output(self.output(job, check, result.output)).await?;
            let ended = Some((result.conclusion, result.summary));
            let report = self.report(job, &check.name, CheckStatus::Completed, ended);
            sink.report(vec![CheckReport { excused: result.excused, ..report }]).await?;
        }
        Ok(())
    }

    /// Hands the reports over. A check that failed only because of quarantined tests counts as
    /// passed; its summary and the end of its output name these tests.
    async fn with_reports(&self, job: &ChecksJob, check: &str, ended: Ran) -> Finished {
        let Ran { mut conclusion, mut summary, mut output, left } = ended;
        let mut excused = Vec::new();
        if !left.files.is_empty() {
            match self.reports.collected(job, check, left).await {
                Ok(None | Some(Excuse::Unexplained)) => {}
                Ok(Some(excuse @ (Excuse::Excused(_) | Excuse::Failing(_)))) => {
                    if let Excuse::Excused(_) = excuse {
                        conclusion = CheckConclusion::Success;
                    }
                    excused = excuse.excused();
                    let words = excuse.words();
                    summary = format!("{summary}; {words}");
                    output = format!("{}\n[{words}]\n", output.trim_end_matches('\n'));
                }
                Err(error) => {
                    tracing::warn!(check, error, "could not store the reports of a check");
                }
            }
        }
        Finished { conclusion, summary, output, excused }
    }

    /// Runs one check in a folder of its own. When this returns, it is removed and no process of
    /// the check is left.
    async fn run_one(
        &self,
        job: &ChecksJob,
        git: &Git,
        check: &CheckConfig,
        number: usize,
        stopped: &mut watch::Receiver<bool>,
        shown: Shown<'_>,
    ) -> Result<Ran, Stop> {
        let path = self.config.work_dir.join(format!("{}-{number}", job.checks.run));
        let made = {
            let path = path.clone();
            spawn_blocking(move || JobFolder::new(&path)).await
        };
        let made = made.map_err(std::io::Error::other).and_then(|made| made);
        let folder = made.map_err(|error| unavailable(&path, &error))?;
        let ran = self.run_in(job, git, check, &folder, stopped, shown).await;
        folder.clear().await;
        ran
    }

    async fn run_in(
        &self,
        job: &ChecksJob,
        git: &Git,
        check: &CheckConfig,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        shown: Shown<'_>,
    ) -> Result<Ran, Stop> {
        let sha = job.checks.candidate.sha.as_str();
        let checkout = folder.checkout();
        let checked_out = tokio::select! {
            done = check_out(git, &checkout, sha, self.config.clone_depth) => done,
            _ = stopped.wait_for(|stopped| *stopped) => return Err(Stop::Unwanted),
        };
        match checked_out {
            Ok(()) => {}
            Err(NotCheckedOut::Host(error)) => return Err(error.into()),
            // A check that can never begin has failed: who is at fault is found as for any other.
            Err(NotCheckedOut::Content(words)) => {
                let summary = "could not check out the candidate".to_owned();
                let left = LeftReports { files: Vec::new(), failed: true, whole: true };
                let conclusion = CheckConclusion::Failure;
                return Ok(Ran { conclusion, summary, output: format!("{words}\n"), left });
            }
        }
        let started = self.clock.now();
        let minutes = check.timeout_minutes.unwrap_or(self.config.timeout_minutes);
        let time = Duration::from_secs(u64::from(minutes) * 60);
        let sandboxed = Job {
            run: check.run.clone(),
            environment: self.environment(job),
            time,
            hidden: vec![git.dir().to_owned(), self.config.work_dir.clone()],
            reports: check.reports.clone(),
        };
        let output = Output::default();
        let over = Notify::new();
        let running = async {
            let ran = self.sandbox.run(sandboxed, folder, stopped, &output).await;
            over.notify_one();
            ran
        };
        // A write that has begun is not interrupted: it could otherwise follow the last one.
        let (ran, ()) = tokio::join!(running, self.show(job, check, &output, &over, shown));
        let (ended, Collected { files, omitted, old }) = match ran {
            Ok(signalbox_sandbox::Ran { ended: Ended::Stopped, .. }) => return Err(Stop::Unwanted),
            Ok(signalbox_sandbox::Ran { ended, reports }) => (Ok(ended), reports),
            Err(not_run) => (Err(not_run), Collected::default()),
        };
        let took = self.clock.now().since(started).millis();
        let seconds = format!("{}.{}", took / 1_000, took % 1_000 / 100);
        if omitted > 0 {
            tracing::warn!(check = check.name, omitted, "some reports exceed the limits");
        }
        let output = output.into_text();
        let failed = matches!(ended, Ok(Ended::Exited(status)) if says_failed(status));
        let left = LeftReports { files, failed, whole: omitted == 0 && old == 0 };
        let (conclusion, summary) = match ended {
            Ok(Ended::Exited(status)) if status.success() => {
                (CheckConclusion::Success, format!("succeeded after {seconds} s"))
            }
            Ok(Ended::Exited(status)) => {
                (CheckConclusion::Failure, format!("{status} after {seconds} s"))
            }
            Ok(Ended::TimedOut) => {
                (CheckConclusion::TimedOut, format!("killed after {minutes} minutes"))
            }
            Ok(Ended::OverLimit(words)) => {
                (CheckConclusion::Failure, format!("killed after {seconds} s: {words}"))
            }
            Ok(Ended::Stopped | Ended::Unsupervised) => (
                CheckConclusion::Failure,
                "the process that supervises the check was killed".into(),
            ),
            Err(NotRun::Machine(error)) => {
                return Err(unavailable(folder.path(), &error).into());
            }
            Err(NotRun::Program(error)) => {
                let program = check.run.first().map(String::as_str).unwrap_or_default();
                (CheckConclusion::Failure, format!("could not run {program:?}: {error}"))
            }
        };
        Ok(Ran { conclusion, summary, output, left })
    }

    /// Stores the end of what a running check has printed, when there is more of it, until the check
    /// is over.
    async fn show(
        &self,
        job: &ChecksJob,
        check: &CheckConfig,
        output: &Output,
        over: &Notify,
        shown: Shown<'_>,
    ) {
        let Shown { sink, mut written } = shown;
        let mut stored = 0;
        while tokio::time::timeout(SHOWN_EVERY, over.notified()).await.is_err() {
            let length = output.length();
            if length == stored {
                continue;
            }
            let so_far = self.output(job, check, output.end());
            let at = so_far.at;
            if sink.output_so_far(so_far, written).await {
                (stored, written) = (length, at);
            }
        }
    }

    fn output(&self, job: &ChecksJob, check: &CheckConfig, text: String) -> CheckOutput {
        CheckOutput {
            org: job.repository.org,
            run: job.checks.run,
            check: check.name.clone(),
            text,
            at: self.clock.now(),
        }
    }

    /// The variables of a check, beside the ones that the sandbox sets.
    fn environment(&self, job: &ChecksJob) -> Vec<(String, OsString)> {
        let prs: Vec<String> = job.checks.prs.iter().map(ToString::to_string).collect();
        let fixed = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("LANG", "C.UTF-8".into()),
            ("CI", "true".into()),
            ("SIGNALBOX_PR", prs.join(",").into()),
            ("SIGNALBOX_BRANCH", job.checks.branch.as_str().into()),
            ("SIGNALBOX_TEST_RUN", job.checks.run.to_string().into()),
        ];
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value));
        let passed = self.config.pass_env.iter();
        fixed
            .chain(passed.filter_map(|name| Some((name.clone(), std::env::var_os(name)?))))
            .collect()
    }
}

/// Whether a check exited and reported a failure. Codes above 125 are what shells return for a
/// program that cannot be run, or that a signal has ended.
fn says_failed(status: ExitStatus) -> bool {
    status.code().is_some_and(|code| (1..=125).contains(&code))
}

/// Why a job stopped before its end.
enum Stop {
    /// Its reports are no longer needed.
    Unwanted,
    /// The result of the candidate is unknown.
    Host(HostError),
}

impl From<SinkClosed> for Stop {
    fn from(_: SinkClosed) -> Self {
        Self::Unwanted
    }
}

impl From<HostError> for Stop {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

#[async_trait]
impl ChecksRunner for LocalChecksRunner {
    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError> {
        // When the reports are no longer needed, running checks end before this returns.
        let (stop, stopped) = watch::channel(false);
        let work = self.run_all(job, sink, stopped);
        tokio::pin!(work);
        let done = tokio::select! {
            done = &mut work => done,
            () = sink.closed() => {
                stop.send_replace(true);
                work.await
            }
        };
        match done {
            Ok(()) | Err(Stop::Unwanted) => Ok(()),
            Err(Stop::Host(error)) => Err(error),
        }
    }
}
