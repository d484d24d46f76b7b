//! `signalbox tests run` and `tests gate`: a failed command counts as passed if every failure is a
//! quarantined test.

mod place;
mod reports;
mod shown;
mod verdict;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group};
use signalbox_client::{AskedTest, Client, ClientError, GitHubTokens, TestedRun, Upload};
use signalbox_domain::ids::RepoName;
use signalbox_terminal::{Signals, note};

use crate::CliError;
use crate::server::{Organization, Repository};
use crate::tests::{content, parts};
use place::Place;
pub(crate) use reports::matching;
use reports::{Before, Naming};
use shown::{Annotations, Shown, show};
use verdict::{Answer, Ended, Read, Verdict, judge};

/// What `tests run` and `tests gate` have in common.
#[derive(Args)]
struct Gate {
    /// JUnit files by pattern: `*` and `?` match within a name, `**` matches any number of folders.
    #[arg(long, value_name = "GLOB", required = true)]
    junit: Vec<String>,
    #[command(flatten)]
    repo: Repository,
    #[command(flatten)]
    org: Organization,
    /// The branch that was tested; default: from the CI system, else from git.
    #[arg(long)]
    branch: Option<String>,
    /// The commit that was tested; default: from the CI system, else from git.
    #[arg(long)]
    sha: Option<String>,
    /// The pull request that was tested; default: from the CI system.
    #[arg(long)]
    pr: Option<u32>,
    /// The name of the CI job with its matrix entry, the same in every run; default: from the CI system.
    #[arg(long)]
    job: Option<String>,
    /// The required status that the job reports; default: the name of the CI job.
    #[arg(long)]
    check: Option<String>,
    /// The merge commit that was tested, or the commit that the tested one was merged into; default:
    /// from the CI system.
    #[arg(long)]
    base: Option<String>,
    /// The URL of the CI job; default: from the CI system.
    #[arg(long, value_name = "URL")]
    job_url: Option<String>,
    /// The variant of the tests, such as an operating system; part of their identity.
    #[arg(long)]
    variant: Option<String>,
    /// The URL of the server.
    #[arg(long, env = "SIGNALBOX_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// The API token, with the scope tests:upload; default: on GitHub Actions an identity token, if the
    /// job has the permission id-token: write. Without one, nothing is uploaded and no failure is
    /// excused.
    #[arg(long, env = "SIGNALBOX_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Exit with 1 if the reports cannot be uploaded, even if the command succeeded.
    #[arg(long)]
    require_server: bool,
}

/// A command and its reports.
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    gate: Gate,
    /// The command that runs the tests.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The reports of a command that has ended.
#[derive(Args)]
pub struct After {
    #[command(flatten)]
    gate: Gate,
    /// The exit code of the command.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit_code: i32,
}

/// Runs a command, and then the gate.
pub(crate) async fn run(asked: Run) -> Result<ExitCode, CliError> {
    let before = reports::before(&asked.gate.junit)?;
    match run_command(&asked.command).await? {
        Stopped::Itself(ended) => decide(&asked.gate, ended, &before).await,
        // The CI system has cancelled the job: its results say nothing.
        Stopped::BySignal => Ok(ExitCode::from(143)),
    }
}

/// The gate for a command that has ended.
pub(crate) async fn after(asked: After) -> Result<ExitCode, CliError> {
    decide(&asked.gate, Ended::Code(asked.exit_code), &Before::new()).await
}

/// How a command ended.
enum Stopped {
    Itself(Ended),
    /// This program received a signal, and has stopped it.
    BySignal,
}

/// How long a command may take to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command in a process group of its own, without the token: the code under test must not
/// upload results in the name of the job.
async fn run_command(command: &[OsString]) -> Result<Stopped, CliError> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(Stopped::Itself(Ended::Code(0)));
    };
    let failed = |error| CliError::Command { program: program.to_string_lossy().into(), error };
    let mut signals = Signals::new().map_err(failed)?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).env_remove("SIGNALBOX_TOKEN").process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            // As a shell does it.
            let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
            note(&format!("could not run {}: {error}", program.to_string_lossy()));
            return Ok(Stopped::Itself(Ended::Code(code)));
        }
    };
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    tokio::select! {
        status = child.wait() => Ok(Stopped::Itself(ended(status.map_err(failed)?))),
        () = signals.next() => {
            // A group that has ended meanwhile needs no signal.
            let send = |signal| group.map(|group| kill_process_group(group, signal));
            let _told = send(Signal::TERM);
            if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
                let _killed = send(Signal::KILL);
                child.wait().await.map_err(failed)?;
            }
            Ok(Stopped::BySignal)
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, signal) => Ended::Signal(signal.unwrap_or_default()),
    }
}

async fn decide(gate: &Gate, ended: Ended, before: &Before) -> Result<ExitCode, CliError> {
    let mut files = matching(&gate.junit)?;
    files.retain(|file| reports::is_new(file, before));
    let variant = gate.variant.as_deref().unwrap_or_default();
    let read = reports::read(
        &files,
        &Naming { org: &gate.org.slug, repo: &gate.repo.name.to_string(), variant },
    );
    let place = Place::of_environment();
    let asked = ask(gate, &place, &files, &read).await;
    let unreachable = match &asked {
        Ok(_) => None,
        Err(problem) => {
            note(&format!("signalbox: {problem}"));
            Some(problem.clone())
        }
    };
    let answer = asked.unwrap_or_else(Answer::Unknown);
    let mut verdict = judge(ended, &read, &answer);
    if let (Verdict::Passed, true, Some(problem)) = (&verdict, gate.require_server, unreachable) {
        verdict = Verdict::Failed(problem);
    }
    let shown: Vec<Shown<'_>> = read.failed.iter().map(|test| shown(gate, test, &answer)).collect();
    let annotations = Annotations::of(place.ci.provider, |name| place.variable(name));
    show(&annotations, &verdict, read.tests, &shown);
    Ok(match verdict {
        Verdict::Passed | Verdict::Excused => ExitCode::SUCCESS,
        Verdict::Failed(_) => {
            let code = u8::try_from(ended.code()).ok().filter(|code| *code > 0);
            ExitCode::from(code.unwrap_or(1))
        }
    })
}

fn shown<'a>(gate: &Gate, test: &'a verdict::FailedTest, answer: &Answer) -> Shown<'a> {
    let is_quarantined = matches!(answer, Answer::Quarantined(ids) if ids.contains(&test.id));
    // Another id than our own is whatever the report says.
    let is_id =
        |id: &str| id.len() == 36 && id.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    let is_known = !matches!(answer, Answer::Unknown(_)) && is_id(&test.id);
    let url = is_known.then(|| {
        let server = gate.server.trim_end_matches('/').trim_end_matches("/v1");
        let RepoName { owner, name, .. } = &gate.repo.name;
        format!("{server}/{}/flaky-tests/test/{}?repo={owner}/{name}", gate.org.slug, test.id)
    });
    Shown { test, is_quarantined, url }
}

/// The API token; else an identity token, if GitHub Actions issues one to the job.
async fn token(gate: &Gate) -> Result<String, String> {
    if let Some(token) = gate.token.as_ref().filter(|token| !token.is_empty()) {
        return Ok(token.clone());
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let (url, token) =
        (variable("ACTIONS_ID_TOKEN_REQUEST_URL"), variable("ACTIONS_ID_TOKEN_REQUEST_TOKEN"));
    let Some((url, token)) = url.zip(token) else {
        return Err(CliError::NoToken.to_string());
    };
    let issued = GitHubTokens { url, token }.issue(&gate.server).await;
    issued.map_err(|error| format!("could not get an identity token: {error}"))
}

/// Uploads the reports, and asks which of the failed tests are quarantined. The error says why
/// there is no answer.
async fn ask(gate: &Gate, place: &Place, files: &[PathBuf], read: &Read) -> Result<Answer, String> {
    let words = |error: ClientError| CliError::from(error).to_string();
    let client = Client::new(&gate.server, &token(gate).await?).map_err(words)?;
    if !files.is_empty() {
        let run = tested(gate, place)?;
        for part in parts(files.to_vec()).map_err(|error| error.to_string())? {
            let files = part.into_iter().map(content).collect::<Result<_, _>>();
            let files = files.map_err(|error| error.to_string())?;
            client.upload(Upload { run: run.clone(), files }).await.map_err(words)?;
        }
    }
    if read.failed.is_empty() {
        return Ok(Answer::Quarantined(BTreeSet::new()));
    }
    let repo = gate.repo.repo();
    let tests: Vec<AskedTest> = read
        .failed
        .iter()
        .map(|test| AskedTest {
            id: test.id.clone(),
            name: test.name.clone(),
            parent_name: test.suite.clone(),
            class_name: test.class.clone(),
            file: test.file.clone(),
            variant: gate.variant.clone().unwrap_or_default(),
        })
        .collect();
    let answer = client.quarantined_of(&repo, &gate.org.slug, &tests).await.map_err(words)?;
    Ok(if answer.is_disabled {
        Answer::Off
    } else {
        Answer::Quarantined(answer.test_ids.into_iter().collect())
    })
}

/// What was tested: as given, else as the CI system or git names it.
fn tested(gate: &Gate, place: &Place) -> Result<TestedRun, String> {
    let missing = |what: &str| format!("unknown {what}: give it with --{what}");
    Ok(TestedRun {
        repo: gate.repo.name.to_string(),
        branch: gate.branch.clone().or_else(|| place.branch()).ok_or_else(|| missing("branch"))?,
        sha: gate.sha.clone().or_else(|| place.sha()).ok_or_else(|| missing("sha"))?,
        pr: gate.pr.or_else(|| place.ci.pr.map(|pr| pr.0)),
        job: gate.job.clone().or_else(|| place.job()),
        check: gate.check.clone().or_else(|| place.ci.job_name.clone()),
        base: gate.base.clone().or_else(|| place.base()),
        job_url: gate.job_url.clone().or_else(|| place.ci.job_url.clone()),
        variant: gate.variant.clone(),
    })
}
