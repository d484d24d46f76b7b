//! Sends runs in the order of their times, and waits until the server has processed them.

use std::collections::VecDeque;
use std::time::Duration;

use signalbox_client::Client;
use signalbox_terminal::Progress;

use super::files::PastResults;
use super::summary::Summary;
use crate::CliError;

/// Runs that are sent before the first of them is processed.
const AHEAD: usize = 32;
/// The first and the longest pause before a state is read again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// A run that the server has.
struct Sent {
    name: String,
    upload: String,
    is_known: bool,
}

/// Sends runs. After an error the runs before it are imported, and the same import continues there.
pub(super) async fn send(
    client: &Client,
    runs: Vec<PastResults>,
    summary: &mut Summary,
) -> Result<(), CliError> {
    let all = runs.len();
    let mut waiting = VecDeque::new();
    let progress = Progress::count("importing runs", all);
    for (number, run) in runs.into_iter().enumerate() {
        let stopped = |error| CliError::Interrupted { sent: number, all, error: Box::new(error) };
        one(client, run, summary, &mut waiting).await.map_err(stopped)?;
        progress.add(1);
        if waiting.len() >= AHEAD {
            processed(client, waiting.pop_front(), summary).await.map_err(stopped)?;
        }
    }
    let stopped = |error| CliError::Interrupted { sent: all, all, error: Box::new(error) };
    while !waiting.is_empty() {
        processed(client, waiting.pop_front(), summary).await.map_err(stopped)?;
    }
    Ok(())
}

async fn one(
    client: &Client,
    run: PastResults,
    summary: &mut Summary,
    waiting: &mut VecDeque<Sent>,
) -> Result<(), CliError> {
    let results = run.place.read()?;
    let receipt = client.import(&run.run, run.form, results).await?;
    for refused in receipt.refused {
        summary.refuse(&refused.rule, || format!("{}: {}", run.name, refused.reason));
    }
    let name = run.name;
    waiting.extend(receipt.uploads.into_iter().map(|it| Sent {
        name: name.clone(),
        upload: it.upload_id,
        is_known: it.known,
    }));
    Ok(())
}

/// Waits until the server has processed a run.
async fn processed(
    client: &Client,
    sent: Option<Sent>,
    summary: &mut Summary,
) -> Result<(), CliError> {
    let Some(sent) = sent else { return Ok(()) };
    let (mut pause, longest) = PAUSES;
    loop {
        let progress = client.upload_progress(&sent.upload).await?.value;
        match progress.state.as_str() {
            "read" if sent.is_known || progress.repeats.is_some() => summary.known += 1,
            "read" => summary.imported += 1,
            "failed" => {
                let problem = progress.problem.unwrap_or_default();
                summary.fail(|| format!("{}: {problem}", sent.name));
            }
            _ => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(longest);
                continue;
            }
        }
        return Ok(());
    }
}
