//! `signalbox events`: the event log of the organization.

use std::time::Duration;

use clap::{Args, Subcommand};
use signalbox_client::{Event, EventsQuery, FollowQuery, Heard, Reply, StreamExt};
use signalbox_terminal::{
    Cell, Format, Table, causes, complain, is_closed, one_line, say, say_json,
};

use crate::CliError;
use crate::server::{Server, list};

/// The most events of a page.
const PAGE: u32 = 100;
/// How often `tail` looks whether anything reads its output.
const LOOK: Duration = Duration::from_secs(1);

/// The server and the filter.
#[derive(Args)]
pub struct Asked {
    /// Only events with these names, separated by commas.
    #[arg(long = "type", value_name = "NAMES")]
    kinds: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    format: Format,
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
        #[arg(long, default_value_t = PAGE, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        #[command(flatten)]
        asked: Asked,
    },
    /// Follow new events until interrupted, also across restarts of the server.
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
            let query = EventsQuery { after, limit: limit.min(PAGE), kinds: asked.kinds.clone() };
            let events = asked.server.client()?.all_events(query);
            let events = events.take(usize::try_from(limit).unwrap_or(usize::MAX));
            let headers = ["POSITION", "TIME", "EVENT", "SUBJECT…", "REASON…"];
            let mut table = Table::new("no events found", &headers);
            list(events, asked.format, &mut table, row).await
        }
        Events::Tail { after, asked } => tail(asked, after).await,
    }
}

async fn tail(asked: Asked, after: Option<String>) -> Result<(), CliError> {
    let query = FollowQuery { after, kinds: asked.kinds };
    let mut events = std::pin::pin!(asked.server.client()?.follow_events(query));
    while !is_closed() {
        let Ok(heard) = tokio::time::timeout(LOOK, events.next()).await else { continue };
        let Some(heard) = heard else { break };
        match heard? {
            Heard::Event(event) => print(&event, asked.format),
            Heard::Lost(error) => {
                complain(&format!("retrying: {}", causes(&CliError::from(error))));
            }
        }
    }
    Ok(())
}

fn print(event: &Reply<Event>, format: Format) {
    if format.is_json() {
        say_json(&event.json);
    } else {
        say(&line(&event.value));
    }
}

/// An event as a line: position, time, name, subject and reason.
fn line(event: &Event) -> String {
    let Event { position, kind, timestamp, .. } = event;
    let (about, reason) = (one_line(&about(event)), one_line(&reason(event)));
    format!("{position:>8}  {timestamp}  {kind:32} {about}  {reason}").trim_end().to_owned()
}

fn row(table: &mut Table, event: Event) {
    let (about, reason) = (about(&event), reason(&event));
    let Event { position, kind, timestamp, .. } = event;
    table.row([position.into(), Cell::Time(timestamp), kind.into(), about.into(), reason.into()]);
}

/// The subject of an event.
fn about(event: &Event) -> String {
    let payload = &event.payload;
    let branch = payload.target_branch.as_deref().unwrap_or_default();
    match (payload.pr_number, &payload.pr_numbers, &payload.test_case) {
        (Some(pr), ..) => format!("#{pr} for {branch}"),
        (None, Some(prs), _) => {
            let prs: Vec<String> = prs.iter().map(|pr| format!("#{pr}")).collect();
            format!("{} for {branch}", prs.join(" "))
        }
        (None, None, Some(test)) => test.name.clone(),
        (None, None, None) => {
            format!("{branch} is {}", payload.state.as_deref().unwrap_or_default())
        }
    }
}

fn reason(event: &Event) -> String {
    let payload = &event.payload;
    let reasons = [
        &payload.queued_reason,
        &payload.failure_reason,
        &payload.cancellation_reason,
        &payload.merged_reason,
    ];
    reasons.into_iter().flatten().map(String::as_str).collect()
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
