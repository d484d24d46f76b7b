//! `signalbox webhooks`: webhooks of a running server.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use signalbox_client::Client;

use crate::{CliError, say};

/// Which server.
#[derive(Args)]
pub struct Place {
    /// The server.
    #[arg(long, env = "SIGNALBOX_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// The API token; it needs queue:admin and all repositories.
    #[arg(long, env = "SIGNALBOX_TOKEN", hide_env_values = true)]
    token: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub enum Webhooks {
    /// List endpoints.
    #[command(after_help = "Example: signalbox webhooks list --json")]
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Create an endpoint; its secret is shown once.
    #[command(
        after_help = "Example: signalbox webhooks create https://hooks.acme.test/x --event pull_request.merged --json"
    )]
    Create {
        /// Where messages are posted.
        url: String,
        /// The events that it gets; all when left out.
        #[arg(long = "event", value_name = "NAME")]
        events: Vec<String>,
        /// For people.
        #[arg(long)]
        description: Option<String>,
        /// Send nothing yet.
        #[arg(long)]
        disabled: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Change an endpoint.
    #[command(
        after_help = "Example: signalbox webhooks update 00000000-0000-0000-0000-000000000001 --enable --catch-up"
    )]
    Update {
        /// The endpoint.
        id: String,
        /// Where messages are posted.
        #[arg(long)]
        url: Option<String>,
        /// The events that it gets.
        #[arg(long = "event", value_name = "NAME", conflicts_with = "all_events")]
        events: Vec<String>,
        /// It gets all events.
        #[arg(long)]
        all_events: bool,
        /// For people.
        #[arg(long)]
        description: Option<String>,
        /// Switch it on.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Switch it off.
        #[arg(long)]
        disable: bool,
        /// Also send what happened while it was off.
        #[arg(long, requires = "enable")]
        catch_up: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Delete an endpoint with its deliveries.
    #[command(
        after_help = "Example: signalbox webhooks delete 00000000-0000-0000-0000-000000000001"
    )]
    Delete {
        /// The endpoint.
        id: String,
        #[command(flatten)]
        place: Place,
    },
    /// Replace the secret of an endpoint; messages are signed with both for a while.
    #[command(
        after_help = "Example: signalbox webhooks rotate 00000000-0000-0000-0000-000000000001 --overlap-hours 24"
    )]
    Rotate {
        /// The endpoint.
        id: String,
        /// Hours for which the old secret stays good; 0 ends it at once.
        #[arg(long, default_value_t = 24)]
        overlap_hours: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Send an example of an event.
    #[command(
        after_help = "Example: signalbox webhooks test 00000000-0000-0000-0000-000000000001 --event pull_request.failed"
    )]
    Test {
        /// The endpoint.
        id: String,
        /// The event.
        #[arg(long)]
        event: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// List what was sent, newest first.
    #[command(
        after_help = "Example: signalbox webhooks deliveries 00000000-0000-0000-0000-000000000001 --state failed"
    )]
    Deliveries {
        /// The endpoint.
        id: String,
        /// Only those in this state: pending, delivered, failed or aborted.
        #[arg(long)]
        state: Option<String>,
        /// The most that are listed.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Send messages once more, under the same ids.
    #[command(
        after_help = "Example: signalbox webhooks replay 00000000-0000-0000-0000-000000000001 --failed-since 2026-01-31T12:00:00Z"
    )]
    Replay {
        /// The endpoint.
        id: String,
        /// This message.
        #[arg(long, conflicts_with_all = ["failed_since", "since"])]
        message: Option<String>,
        /// Those that failed and were made at this time or later.
        #[arg(long, value_name = "TIME", conflicts_with = "since")]
        failed_since: Option<String>,
        /// All that were made at this time or later.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// With --since: all that were made at this time or earlier.
        #[arg(long, value_name = "TIME", requires = "since")]
        until: Option<String>,
        #[command(flatten)]
        place: Place,
    },
}

pub async fn webhooks(action: Webhooks) -> Result<(), CliError> {
    match action {
        Webhooks::List { place } => list(&place).await,
        Webhooks::Create { url, events, description, disabled, place } => {
            let body = json!({
                "url": url, "events": events, "description": description, "enabled": !disabled,
            });
            secret(&place, "create", &body).await
        }
        Webhooks::Update {
            id,
            url,
            events,
            all_events,
            description,
            enable,
            disable,
            catch_up,
            place,
        } => {
            let mut body = json!({
                "webhookId": id, "url": url, "description": description, "catchUp": catch_up,
            });
            if all_events || !events.is_empty() {
                body["events"] = json!(events);
            }
            if enable || disable {
                body["enabled"] = json!(enable);
            }
            done(&place, "update", &body, "changed").await
        }
        Webhooks::Delete { id, place } => {
            done(&place, "delete", &json!({ "webhookId": id }), "deleted").await
        }
        Webhooks::Rotate { id, overlap_hours, place } => {
            let body = json!({ "webhookId": id, "overlapHours": overlap_hours });
            secret(&place, "rotate-secret", &body).await
        }
        Webhooks::Test { id, event, place } => {
            let reply = call(&place, "test", &json!({ "webhookId": id, "event": event })).await?;
            show(&place, &reply, || format!("message {} is on its way", text(&reply["messageId"])));
            Ok(())
        }
        Webhooks::Deliveries { id, state, limit, place } => {
            deliveries(&place, &id, state.as_deref(), limit).await
        }
        Webhooks::Replay { id, message, failed_since, since, until, place } => {
            let body = json!({
                "webhookId": id, "messageId": message, "failedSince": failed_since,
                "since": since, "until": until,
            });
            replay(&place, body).await
        }
    }
}

async fn call(place: &Place, operation: &str, body: &Value) -> Result<Value, CliError> {
    // What was not given is left out.
    let given = body.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let given: Map<String, Value> =
        given.map(|(key, value)| (key.clone(), value.clone())).collect();
    let client = Client::new(&place.server, &place.token)?;
    Ok(client.post(&format!("webhooks/{operation}"), &given.into()).await?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn show(place: &Place, reply: &Value, words: impl FnOnce() -> String) {
    say(&if place.json { reply.to_string() } else { words() });
}

async fn done(place: &Place, operation: &str, body: &Value, word: &str) -> Result<(), CliError> {
    let reply = call(place, operation, body).await?;
    show(place, &reply, || word.to_owned());
    Ok(())
}

async fn secret(place: &Place, operation: &str, body: &Value) -> Result<(), CliError> {
    let reply = call(place, operation, body).await?;
    show(place, &reply, || {
        let id = text(&reply["webhook"]["id"]);
        format!("{}\nThis is shown once. The endpoint's id is {id}.", text(&reply["secret"]))
    });
    Ok(())
}

async fn list(place: &Place) -> Result<(), CliError> {
    let reply = call(place, "list", &json!({})).await?;
    for endpoint in reply["webhooks"].as_array().into_iter().flatten() {
        show(place, endpoint, || line(endpoint));
    }
    Ok(())
}

fn line(endpoint: &Value) -> String {
    let state = match (endpoint["enabled"].as_bool(), endpoint["failingSince"].as_str()) {
        (Some(true), None) => "on".to_owned(),
        (Some(true), Some(since)) => format!("failing since {since}"),
        _ => format!("off: {}", text(&endpoint["offReason"])),
    };
    let names = endpoint["events"].as_array().into_iter().flatten().map(text);
    let names: Vec<&str> = names.collect();
    let names = if names.is_empty() { "all".to_owned() } else { names.join(" ") };
    format!("{} {} ({state}) [{names}]", text(&endpoint["id"]), text(&endpoint["url"]))
}

async fn deliveries(
    place: &Place,
    id: &str,
    state: Option<&str>,
    limit: u32,
) -> Result<(), CliError> {
    let (mut left, mut token) = (limit, String::new());
    while left > 0 {
        let body = json!({
            "webhookId": id, "state": state, "pageSize": left.min(100), "pageToken": token,
        });
        let page = call(place, "deliveries", &body).await?;
        for delivery in page["deliveries"].as_array().into_iter().flatten() {
            show(place, delivery, || delivery_line(delivery));
            left = left.saturating_sub(1);
        }
        text(&page["nextPageToken"]).clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    Ok(())
}

fn delivery_line(delivery: &Value) -> String {
    let tries = delivery["attempts"].as_array().map_or(&[][..], Vec::as_slice);
    let last = tries.last().map(|last| match last["status"].as_u64() {
        Some(status) => status.to_string(),
        None => text(&last["outcome"]).to_owned(),
    });
    let last = last.map(|last| format!(", last {last}")).unwrap_or_default();
    let next = delivery["nextAttemptAt"].as_str();
    let next = next.map(|at| format!(", next {at}")).unwrap_or_default();
    let part = |key: &str| text(&delivery[key]).to_owned();
    let (id, at, event, state) = (part("id"), part("createdAt"), part("event"), part("state"));
    format!("{id} {at} {event} {state} (tries {}{last}{next})", tries.len())
}

/// Replays until nothing is left: one call does so many and no more.
async fn replay(place: &Place, body: Value) -> Result<(), CliError> {
    let mut messages = 0;
    loop {
        let reply = call(place, "replay", &body).await?;
        messages += reply["messages"].as_u64().unwrap_or(0);
        if reply["more"].as_bool() != Some(true) {
            break;
        }
    }
    let reply = json!({ "messages": messages });
    show(place, &reply, || format!("{messages} messages are on their way"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_and_deliveries_are_one_line_each() {
        let endpoint = json!({
            "id": "1", "url": "https://a.test/", "enabled": false, "offReason": "failing",
            "events": [], "failingSince": "2026-01-01T00:00:00.000Z",
        });
        assert_eq!(line(&endpoint), "1 https://a.test/ (off: failing) [all]");
        let delivery = json!({
            "id": "2", "createdAt": "2026-01-01T00:00:00.000Z", "event": "a.b", "state": "pending",
            "nextAttemptAt": "2026-01-01T00:00:05.000Z",
            "attempts": [{"status": 500, "outcome": "rejected"}, {"status": null, "outcome": "timed_out"}],
        });
        assert_eq!(
            delivery_line(&delivery),
            "2 2026-01-01T00:00:00.000Z a.b pending (tries 2, last timed_out, next 2026-01-01T00:00:05.000Z)"
        );
    }
}
