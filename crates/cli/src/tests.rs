//! `signalbox tests`: uploads test results to a server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use signalbox_client::{MOST_FILES, TestedRun, Upload};
use signalbox_terminal::{Format, Progress};

use crate::flaky_tests::{FlakyTests, flaky_tests};
use crate::import::{Import, import};
use crate::server::{Repository, Server};
use crate::{CliError, gate};

#[derive(Subcommand)]
pub enum Tests {
    /// Upload JUnit reports.
    #[command(after_help = "Exit code 0: the server accepted the files. \
                      The server reads the files afterwards: the printed URL shows their state. Uploading the \
                      same files again has no effect. More than 1000 files are sent in several requests.\n\n\
                      Example: signalbox tests upload --repo git.local/acme/calc --branch main \
                      --sha $(git rev-parse HEAD) target/nextest/default/junit.xml")]
    Upload(Reports),
    /// Run tests; failures of quarantined tests alone do not fail the command.
    #[command(
        after_help = "The command's reports are uploaded. Exit codes: that of the command, or 0 if every \
                      failure is a quarantined test. Without a report, with an incomplete one, with a \
                      failure outside of the tests or without an answer of the server nothing is excused.\n\n\
                      Example: signalbox tests run --repo git.local/acme/calc --org acme \
                      --junit 'target/nextest/**/junit.xml' -- cargo nextest run --profile ci"
    )]
    Run(Box<gate::Run>),
    /// Decide after the tests, from their reports and their exit code.
    #[command(
        after_help = "Exit codes: the given one, or 0 if every failure is a quarantined test.\n\n\
                      Example: signalbox tests gate --repo git.local/acme/calc --org acme \
                      --junit 'reports/*.xml' --exit-code $?"
    )]
    Gate(Box<gate::After>),
    /// Import results of the past, so that tests are judged by them.
    #[command(
        after_help = "Exit codes: 0 every run is imported, was imported before, or is refused for its time; \
                      1 a file is malformed, and then nothing is sent, or the server could not process a \
                      run. The same import again changes nothing; an interrupted one continues.\n\n\
                      Example: signalbox tests import --repo git.local/acme/calc --since 90d \
                      --layout '{branch}/{sha}/{job}.xml' history"
    )]
    Import(Box<Import>),
    #[command(flatten)]
    Flaky(FlakyTests),
}

#[derive(Args)]
pub struct Reports {
    /// JUnit files.
    #[arg(required_unless_present = "junit", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// JUnit files by pattern: `*` and `?` match within a name, `**` matches any number of folders.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    junit: Vec<String>,
    #[command(flatten)]
    repo: Repository,
    /// The branch that was tested.
    #[arg(long)]
    branch: String,
    /// The commit that was tested.
    #[arg(long)]
    sha: String,
    /// The pull request that was tested.
    #[arg(long)]
    pr: Option<u32>,
    /// The name of the CI job with its matrix entry, the same in every run.
    #[arg(long)]
    job: Option<String>,
    /// The required status that the job reports; the merge queue finds the results of a failed check
    /// by it.
    #[arg(long)]
    check: Option<String>,
    /// The merge commit that was tested, or the commit that the tested one was merged into.
    #[arg(long)]
    base: Option<String>,
    /// The URL of the CI job.
    #[arg(long, value_name = "URL")]
    job_url: Option<String>,
    /// The variant of the tests, such as an operating system; part of their identity.
    #[arg(long)]
    variant: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    format: Format,
}

/// Runs the command. Only `run` and `gate` have exit codes of their own.
pub async fn tests(action: Tests) -> Result<ExitCode, CliError> {
    match action {
        Tests::Upload(upload) => send(upload).await?,
        Tests::Run(asked) => return gate::run(*asked).await,
        Tests::Gate(asked) => return gate::after(*asked).await,
        Tests::Import(asked) => import(*asked).await?,
        Tests::Flaky(action) => flaky_tests(action).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The most bytes of the files of a request, as long as it has several.
const PART_BYTES: u64 = 64 * 1024 * 1024;

async fn send(reports: Reports) -> Result<(), CliError> {
    let client = reports.server.client()?;
    let mut files = reports.files;
    for pattern in &reports.junit {
        files.extend(some_matching(pattern)?);
    }
    let run = TestedRun {
        repo: reports.repo.name.to_string(),
        branch: reports.branch,
        sha: reports.sha,
        pr: reports.pr,
        job: reports.job,
        check: reports.check,
        base: reports.base,
        job_url: reports.job_url,
        variant: reports.variant,
    };
    let progress = Progress::count("uploading files", files.len());
    for part in parts(files)? {
        let count = part.len();
        let files = part.into_iter().map(content).collect::<Result<_, _>>()?;
        let receipt = client.upload(Upload { run: run.clone(), files }).await?;
        progress.add(count.try_into().unwrap_or(u64::MAX));
        reports.format.say(&receipt.json.trim_end(), || {
            let files = if count == 1 { "file" } else { "files" };
            format!("{count} {files} accepted: {}{}", client.server(), receipt.status_path)
        });
    }
    Ok(())
}

/// The files of each request.
pub(crate) fn parts(files: Vec<PathBuf>) -> Result<Vec<Vec<PathBuf>>, CliError> {
    let (mut parts, mut bytes): (Vec<Vec<PathBuf>>, u64) = (Vec::new(), 0);
    for file in files {
        let size = match std::fs::metadata(&file) {
            Ok(found) => found.len(),
            Err(error) => return Err(CliError::File { file, error }),
        };
        bytes = bytes.saturating_add(size);
        match parts.last_mut() {
            Some(part) if part.len() < MOST_FILES && bytes <= PART_BYTES => part.push(file),
            Some(_) | None => {
                parts.push(vec![file]);
                bytes = size;
            }
        }
    }
    Ok(parts)
}

/// The files that match a pattern, by name. A pattern that matches no file is an error: the results
/// of a job would be missing silently.
fn some_matching(pattern: &str) -> Result<Vec<PathBuf>, CliError> {
    let files = gate::matching(std::slice::from_ref(&pattern.to_owned()))?;
    if files.is_empty() {
        let problem = "no file matches".to_owned();
        return Err(CliError::Pattern { pattern: pattern.to_owned(), problem });
    }
    Ok(files)
}

/// A file's name and its content.
pub(crate) fn content(file: PathBuf) -> Result<(String, Vec<u8>), CliError> {
    match std::fs::read(&file) {
        Ok(bytes) => Ok((file.to_string_lossy().into_owned(), bytes)),
        Err(error) => Err(CliError::File { file, error }),
    }
}

#[cfg(test)]
mod checks {
    use std::path::Path;

    use clap::Parser;
    use signalbox_client::QuarantineSetting;
    use tempfile::TempDir;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        action: Tests,
    }

    fn read(words: &str) -> Result<Tests, clap::Error> {
        let place = "--repo git.test/acme/calc --token t";
        let line = format!("signalbox {words} {place}");
        Line::try_parse_from(line.split(' ')).map(|it| it.action)
    }

    #[test]
    fn reports_are_named_one_by_one_or_by_patterns() {
        let folder = TempDir::new().expect("a folder");
        for name in ["a.xml", "b.xml", "c.txt", "deep/er/d.xml"] {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::fs::write(file, "").expect("written");
        }
        let names = |pattern: &str| -> Result<Vec<String>, CliError> {
            let found = some_matching(&folder.path().join(pattern).display().to_string())?;
            let name = |file: PathBuf| file.strip_prefix(folder.path()).map(Path::to_path_buf);
            let names = found.into_iter().map(|it| name(it).expect("inside").display().to_string());
            Ok(names.collect())
        };
        assert_eq!(names("*.xml").expect("two"), ["a.xml", "b.xml"]);
        assert_eq!(names("**/*.xml").expect("three"), ["a.xml", "b.xml", "deep/er/d.xml"]);
        assert!(names("*.json").expect_err("none").to_string().ends_with("no file matches"));
        assert!(names("a[").is_err());
        let upload = "upload --branch main --sha 1f0c";
        assert!(read(&format!("{upload} --junit *.xml b/*.xml")).is_ok());
        assert!(read(&format!("{upload} a.xml b.xml")).is_ok());
        assert!(read(upload).is_err());
    }

    #[test]
    fn many_files_are_several_requests() {
        let folder = TempDir::new().expect("a folder");
        let file = |size: u64| {
            let file = folder.path().join(size.to_string());
            std::fs::File::create(&file).and_then(|it| it.set_len(size)).expect("a file");
            file
        };
        let sizes = |files: Vec<PathBuf>| -> Vec<usize> {
            parts(files).expect("files").iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(vec![file(1); 2 * MOST_FILES + 1]), [MOST_FILES, MOST_FILES, 1]);
        assert_eq!(sizes(vec![file(1), file(PART_BYTES), file(1)]), [1, 1, 1]);
        assert!(parts(vec![folder.path().join("missing")]).is_err());
    }

    #[test]
    fn a_decision_about_quarantine_is_a_flag_or_a_word_and_only_one() {
        for (given, setting) in [
            ("--always", QuarantineSetting::Always),
            ("--never", QuarantineSetting::Never),
            ("--follow", QuarantineSetting::Follow),
            ("never", QuarantineSetting::Never),
        ] {
            let Ok(Tests::Flaky(FlakyTests::Quarantine { decision, .. })) =
                read(&format!("quarantine 1 {given}"))
            else {
                panic!("{given} is not read")
            };
            assert_eq!(decision.setting(), setting);
        }
        for wrong in
            ["quarantine 1", "quarantine 1 --always --never", "quarantine 1 never --always"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("unhealthy --org acme").is_ok());
    }
}
