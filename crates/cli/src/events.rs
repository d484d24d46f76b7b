//! `signalbox events`: what has happened, and what happens.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;
use signalbox_client::Client;
use signalbox_terminal::{causes, complain};

use crate::server::Server;
use crate::{CliError, say};

/// How long `tail` waits before it looks again.
const PAUSE: Duration = Duration::from_secs(1);
/// Events of one page.
const PAGE: u32 = 100;

/// Which events of which server.
#[derive(Args)]
pub struct Asked {
    /// Only events with these names, separated by commas.
    #[arg(long = "type", value_name = "NAMES")]
    kinds: Option<String>,
    #[command(flatten)]
    server: Server,
    /// As JSON, one event a line.
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
        /// After this position.
        #[arg(long, value_name = "POSITION", default_value = "0")]
        after: String,
        /// How many at most.
        #[arg(long, default_value_t = PAGE, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        asked: Asked,
    },
    /// Show events as they come, until it is interrupted.
    #[command(after_help = "Example: signalbox events tail --type pull_request.failed --json")]
    Tail {
        /// After this position; without it from now on.
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

/// Shows a page, and returns the position to go on from and whether more is there.
async fn page(
    client: &Client,
    asked: &Asked,
    after: &str,
    limit: u32,
) -> Result<(String, bool), CliError> {
    let reply = read(client, asked, after, limit).await?;
    for event in reply["events"].as_array().into_iter().flatten() {
        say(&if asked.json { event.to_string() } else { line(event) });
    }
    let next = reply["next"].as_str().unwrap_or(after).to_owned();
    let more = reply["next"] != reply["newest"] && next != after;
    Ok((next, more))
}

async fn read(client: &Client, asked: &Asked, after: &str, limit: u32) -> Result<Value, CliError> {
    let limit = limit.to_string();
    let mut query = vec![("after", after), ("limit", limit.as_str())];
    query.extend(asked.kinds.as_deref().map(|kinds| ("type", kinds)));
    Ok(client.get("events", &query).await?)
}

async fn tail(asked: &Asked, after: Option<String>) -> Result<(), CliError> {
    let client = asked.server.client()?;
    let mut after = match after {
        Some(after) => after,
        None => read(&client, asked, "0", 1).await?["newest"].as_str().unwrap_or("0").to_owned(),
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
                // A server that is started anew is back soon.
                complain(&format!("{}; trying once more", causes(&error)));
                failing = true;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// An event for people: time, name, and what it is about.
fn line(event: &Value) -> String {
    let payload = &event["payload"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let time = text(&event["timestamp"]);
    let about = match (&payload["pr_number"], &payload["pr_numbers"], &payload["test_case"]) {
        (Value::Number(pr), ..) => format!("#{pr} for {}", text(&payload["target_branch"])),
        (_, Value::Array(prs), _) => {
            let prs: Vec<String> = prs.iter().map(|pr| format!("#{pr}")).collect();
            format!("{} for {}", prs.join(" "), text(&payload["target_branch"]))
        }
        (.., Value::Object(case)) => case.get("name").map(text).unwrap_or_default(),
        _ => format!("{} is {}", text(&payload["target_branch"]), text(&payload["state"])),
    };
    let reasons = ["queued_reason", "failure_reason", "cancellation_reason", "merged_reason"];
    let reason: String = reasons.iter().map(|field| text(&payload[*field])).collect();
    format!(
        "{:>8}  {time}  {:32} {about}  {reason}",
        text(&event["position"]),
        text(&event["type"])
    )
    .trim_end()
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_says_what_happened_to_whom() {
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
        let line = line(&event);
        assert!(line.contains("#3 for main  TEST_RUN_TIMEOUT"), "{line}");
        assert!(line.trim_start().starts_with("7  2026-01-31T12:00:00Z  pull_request.failed"));
    }
}
