//! `signalbox tests`: results of tests, sent to a running server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use glob::MatchOptions;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use signalbox_domain::ids::RepoName;

use super::{FlakyTests, flaky_tests};
use crate::terminal::say;

#[derive(Subcommand)]
pub(crate) enum Tests {
    /// Upload JUnit reports.
    #[command(
        after_help = "Exit codes: 0 the server has taken the files, 1 it has not, 2 wrong usage. \
                      The files are read after that: the address that is printed tells what became \
                      of them. Sending the same files again is no second upload.\n\n\
                      Example: signalbox tests upload --repo git.local/acme/calc --branch main \
                      --sha $(git rev-parse HEAD) target/nextest/default/junit.xml"
    )]
    Upload(Upload),
    #[command(flatten)]
    Flaky(FlakyTests),
}

#[derive(Args)]
pub(crate) struct Upload {
    /// JUnit files.
    #[arg(required_unless_present = "junit", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// JUnit files by patterns: `*` and `?` stay within a name, `**` is any number of folders.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    junit: Vec<String>,
    /// HOST/OWNER/NAME.
    #[arg(long)]
    repo: String,
    /// The branch that was tested.
    #[arg(long)]
    branch: String,
    /// The commit that was tested.
    #[arg(long)]
    sha: String,
    /// The pull request that was tested.
    #[arg(long)]
    pr: Option<u32>,
    /// The name of the CI job.
    #[arg(long)]
    job: Option<String>,
    /// The page of the CI job.
    #[arg(long, value_name = "URL")]
    job_url: Option<String>,
    /// The variant of the tests, such as an operating system; part of their identity.
    #[arg(long)]
    variant: Option<String>,
    /// The server.
    #[arg(long, env = "SIGNALBOX_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// The API token.
    #[arg(long, env = "SIGNALBOX_TOKEN", hide_env_values = true)]
    token: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn tests(action: Tests) -> Result<(), String> {
    match action {
        Tests::Upload(upload) => send(upload).await,
        Tests::Flaky(action) => flaky_tests(action).await,
    }
}

async fn send(upload: Upload) -> Result<(), String> {
    RepoName::parse(&upload.repo).map_err(|error| error.to_string())?;
    let mut files = upload.files;
    for pattern in &upload.junit {
        files.extend(matching(pattern)?);
    }
    let mut form = Form::new();
    for file in &files {
        form = form.part("file", part(file)?);
    }
    let pr = upload.pr.map(|pr| pr.to_string());
    let given = [
        ("repo", Some(upload.repo)),
        ("branch", Some(upload.branch)),
        ("sha", Some(upload.sha)),
        ("pr", pr),
        ("job", upload.job),
        ("job_url", upload.job_url),
        ("variant", upload.variant),
    ];
    let query: Vec<(&str, String)> =
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(30))
        .timeout(Duration::from_mins(10))
        .build()
        .map_err(|error| error.to_string())?;
    let server = upload.server.trim_end_matches('/').trim_end_matches("/v1");
    let url = format!("{server}/v1/flaky-tests/upload");
    let request = client.post(&url).query(&query).header("x-api-token", upload.token);
    let reply = request.multipart(form).send().await;
    let reply = reply.map_err(|error| format!("{url}: {}", error.without_url()))?;
    let (status, text) = (reply.status(), reply.text().await.unwrap_or_default());
    let body: Option<Value> = serde_json::from_str(&text).ok();
    let field = |name: &str| body.as_ref().and_then(|it| it[name].as_str());
    if !status.is_success() {
        return Err(format!("{status}: {}", field("detail").unwrap_or(&text)));
    }
    let path = field("status_url").ok_or_else(|| format!("{url}: the answer has no address"))?;
    let words = format!("{} files were taken: {server}{path}", files.len());
    say(if upload.json { text.trim_end() } else { &words });
    Ok(())
}

/// The files that fit a pattern, by name. A pattern that nothing fits is a mistake: the results of
/// a job would be missing without a word.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{pattern:?}: {error}");
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
    let found = glob::glob_with(pattern, options).map_err(|error| wrong(&error))?;
    let mut files = found.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
    files.retain(|file| file.is_file());
    if files.is_empty() { Err(wrong(&"no file fits")) } else { Ok(files) }
}

/// A file with its own name.
fn part(file: &Path) -> Result<Part, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let name = file.to_string_lossy().into_owned();
    let part = Part::bytes(bytes).file_name(name);
    part.mime_str("application/xml").map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
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
        let names = |pattern: &str| -> Result<Vec<String>, String> {
            let found = matching(&folder.path().join(pattern).display().to_string())?;
            let name = |file: PathBuf| file.strip_prefix(folder.path()).map(Path::to_path_buf);
            let names = found.into_iter().map(|it| name(it).expect("inside").display().to_string());
            Ok(names.collect())
        };
        assert_eq!(names("*.xml").expect("two"), ["a.xml", "b.xml"]);
        assert_eq!(names("**/*.xml").expect("three"), ["a.xml", "b.xml", "deep/er/d.xml"]);
        assert!(names("*.json").expect_err("none").ends_with("no file fits"));
        assert!(names("a[").is_err());
        let upload = "upload --branch main --sha 1f0c";
        assert!(read(&format!("{upload} --junit *.xml b/*.xml")).is_ok());
        assert!(read(&format!("{upload} a.xml b.xml")).is_ok());
        assert!(read(upload).is_err());
    }

    #[test]
    fn a_decision_about_quarantine_is_a_flag_or_a_word_and_only_one() {
        for (given, word) in [
            ("--always", "ALWAYS_QUARANTINE"),
            ("--never", "NEVER_QUARANTINE"),
            ("--follow", "UNSPECIFIED"),
            ("never", "NEVER_QUARANTINE"),
        ] {
            let Ok(Tests::Flaky(FlakyTests::Quarantine { decision, .. })) =
                read(&format!("quarantine 1 {given}"))
            else {
                panic!("{given} is not read")
            };
            assert_eq!(decision.word(), word);
        }
        for wrong in
            ["quarantine 1", "quarantine 1 --always --never", "quarantine 1 never --always"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("unhealthy --org acme").is_ok());
    }
}
