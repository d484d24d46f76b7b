//! `signalbox tests import`: results of the past, in the order of their times.

mod files;
mod layout;
mod send;
mod summary;

use std::path::PathBuf;

use clap::Args;
use signalbox_terminal::Format;

use crate::server::{Repository, Server};
use crate::{CliError, clock};
use files::{Found, Given};
use layout::Layout;
use send::send;
use summary::Summary;

/// How often a call is made at most: a restart of the server does not end an import.
const ATTEMPTS: u32 = 8;

/// The files, the repository and the server of an import.
#[derive(Args)]
pub struct Import {
    /// JUnit XML files, NDJSON files and bundles of the public uploader, or folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    repo: Repository,
    /// Skip runs that ended earlier: a duration before now, such as 90d or 12h, or a time, such as
    /// 2026-09-01T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// The branch of JUnit files.
    #[arg(long)]
    branch: Option<String>,
    /// The commit of JUnit files.
    #[arg(long)]
    sha: Option<String>,
    /// The name of the CI job of JUnit files.
    #[arg(long)]
    job: Option<String>,
    /// The variant of the tests of JUnit files; part of their identity.
    #[arg(long)]
    variant: Option<String>,
    /// Where the paths of JUnit files have these values: {branch}, {sha}, {base}, {job}, {pr}, {variant}, and
    /// {} for any other text; matched with the end of each path.
    #[arg(long, value_name = "PATTERN")]
    layout: Option<String>,
    /// Check the files and print the summary, but send nothing. Needs no server.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    format: Format,
}

/// Checks every file, sends the runs in the order of their times, and waits until they are judged.
pub(crate) async fn import(asked: Import) -> Result<(), CliError> {
    let of_repo = asked.repo.repo();
    let now = clock::now();
    let since = asked.since.as_deref().map(|text| clock::since(text, now)).transpose()?;
    let layout = asked.layout.as_deref().map(Layout::parse).transpose()?;
    let given = Given {
        repo: asked.repo.name.to_string(),
        branch: asked.branch,
        sha: asked.sha,
        job: asked.job,
        variant: asked.variant,
        layout,
    };
    let Found { mut runs, mut summary } = files::read(&asked.files, &given).await?;
    runs.retain(|run| {
        let late = since.is_none_or(|since| run.at >= since);
        if !late {
            let since = since.unwrap_or(run.at);
            summary.refuse("before_since", || {
                format!("{}: the run ended at {}, before {since}", run.name, run.at)
            });
        }
        late
    });
    runs.sort_by_key(|run| run.at);
    summary.take_runs(&runs);
    if asked.dry_run {
        print(&summary, asked.format);
        return Ok(());
    }
    let client = asked.server.client()?.with_attempts(ATTEMPTS);
    send(&client, runs, &mut summary).await?;
    if summary.imported + summary.known > 0 {
        let finished = client.finish_import(&of_repo).await?.value;
        summary.judged = Some((finished.flaky, finished.broken));
    }
    print(&summary, asked.format);
    let failed = summary.failed();
    if failed == 0 { Ok(()) } else { Err(CliError::NotImported { failed }) }
}

fn print(summary: &Summary, format: Format) {
    format.say(&summary.json(), || summary.text());
}
