//! `signalbox events`: the event log of the organization.

use std::time::Duration;

use clap::{Args, Subcommand};
use signalbox_client::{Client, Event, EventsPage, EventsQuery};
use signalbox_terminal::{causes, complain};

use crate::CliError;
use crate::server::{Server, show};

/// How long `tail` waits between two requests.
const PAUSE: Duration = Duration::from_secs(1);
/// Page size, in events.
const PAGE: u32 = 100;

/// The server and the filter.
#[derive(Args)]
pub struct Asked {
    /// Only events with these names, separated by commas.
    #[arg(long = "type", value_name = "NAMES")]
    kinds: Option<String>,
    #[command(flatten)]
    server: Server,
    /// Print JSON, one event per line.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub enum Events {
    /// List events, the oldest first.
    #[command(
        after_help = "Example: signalbox events list --after 1042 --type pull_request.merged"
    )]
    List {
        /// Only events after this position.
        #[arg(long, value_name = "POSITION", default_value = "0")]
        after: String,
        /// The most events to list.
        #[arg(long, default_value_t = PAGE, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        asked: Asked,
    },
    /// Follow new events until interrupted.
    #[command(after_help = "Example: signalbox events tail --type pull_request.failed --json")]
    Tail {
        /// Start after this position; default: only new events.
        #[arg(long, value_name = "POSITION")]
        after: Option<String>,
        #[command(flatten)]
        asked: Asked,
    },
}

pub async fn events(action: Events) -> Result<(), CliError> {
    match action {
        Events::List { after, limit, asked } => {
            page(&asked.server.client()?, &asked, &after, limit).await.map(drop)
        }
        Events::Tail { after, asked } => tail(&asked, after).await,
    }
}

/// Prints a page, and returns the next position and whether there are more events.
async fn page(
    client: &Client,
    asked: &Asked,
    after: &str,
    limit: u32,
) -> Result<(String, bool), CliError> {
    let page = read(client, asked, after, limit).await?;
    page.events.iter().for_each(|event| show(event, asked.json, line));
    let at_end = page.next == page.newest;
    let next = page.next.unwrap_or_else(|| after.to_owned());
    let more = !at_end && next != after;
    Ok((next, more))
}

async fn read(
    client: &Client,
    asked: &Asked,
    after: &str,
    limit: u32,
) -> Result<EventsPage, CliError> {
    let query = EventsQuery { after: after.to_owned(), limit, kinds: asked.kinds.clone() };
    Ok(client.events(&query).await?.value)
}

async fn tail(asked: &Asked, after: Option<String>) -> Result<(), CliError> {
    let client = asked.server.client()?;
    let mut after = match after {
        Some(after) => after,
        None => read(&client, asked, "0", 1).await?.newest.unwrap_or_else(|| "0".to_owned()),
    };
    let mut failing = false;
    loop {
        match page(&client, asked, &after, PAGE).await {
            Ok((next, more)) => {
                (after, failing) = (next, false);
                if more {
                    continue;
                }
            }
            Err(error) if failing => return Err(error),
            Err(error) => {
                // A restarting server is back soon.
                complain(&format!("retrying: {}", causes(&error)));
                failing = true;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// An event as a line: position, time, name, subject and reason.
fn line(event: &Event) -> String {
    let payload = &event.payload;
    let branch = payload.target_branch.as_deref().unwrap_or_default();
    let about = match (payload.pr_number, &payload.pr_numbers, &payload.test_case) {
        (Some(pr), ..) => format!("#{pr} for {branch}"),
        (None, Some(prs), _) => {
            let prs: Vec<String> = prs.iter().map(|pr| format!("#{pr}")).collect();
            format!("{} for {branch}", prs.join(" "))
        }
        (None, None, Some(test)) => test.name.clone(),
        (None, None, None) => {
            format!("{branch} is {}", payload.state.as_deref().unwrap_or_default())
        }
    };
    let reasons = [
        &payload.queued_reason,
        &payload.failure_reason,
        &payload.cancellation_reason,
        &payload.merged_reason,
    ];
    let reason: String = reasons.into_iter().flatten().map(String::as_str).collect();
    let Event { position, kind, timestamp, .. } = event;
    format!("{position:>8}  {timestamp}  {kind:32} {about}  {reason}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_the_event_and_its_subject() {
        let event = json!({
            "position": "7",
            "type": "pull_request.failed",
            "timestamp": "2026-01-31T12:00:00Z",
            "payload": {
                "pr_number": 3,
                "target_branch": "main",
                "failure_reason": "TEST_RUN_TIMEOUT",
            },
        });
        let line = line(&serde_json::from_value(event).expect("an event"));
        assert!(line.contains("#3 for main  TEST_RUN_TIMEOUT"), "{line}");
        assert!(line.trim_start().starts_with("7  2026-01-31T12:00:00Z  pull_request.failed"));
    }
}
