//! `signalbox webhooks`: the webhook endpoints of a server.

use clap::{Args, Subcommand};
use serde::Serialize;
use signalbox_client::{
    Client, DeliveriesQuery, Delivery, Done, NewWebhook, ReplayQuery, Reply, StreamExt, Webhook,
    WebhookChange, WebhookSecret, stream,
};
use signalbox_terminal::{Cell, Format, Table};

use crate::CliError;
use crate::server::{Server, list, show};

/// The most deliveries of a page.
const PAGE: u32 = 100;

/// The server, the token and the output.
#[derive(Args)]
pub struct ServerArgs {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    format: Format,
}

#[derive(Subcommand)]
pub enum Webhooks {
    /// List endpoints.
    #[command(after_help = "Example: signalbox webhooks list --json")]
    List {
        #[command(flatten)]
        place: ServerArgs,
    },
    /// Create an endpoint; its secret is shown once.
    #[command(
        after_help = "Example: signalbox webhooks create https://hooks.acme.test/x --event pull_request.merged --json"
    )]
    Create {
        /// The URL that messages are sent to.
        url: String,
        /// The events to send; default: the ones of the public API.
        #[arg(long = "event", value_name = "NAME", conflicts_with = "all_events")]
        events: Vec<String>,
        /// Send all events that the server has now, also the ones that the public API lacks.
        #[arg(long)]
        all_events: bool,
        /// A description.
        #[arg(long)]
        description: Option<String>,
        /// Create it turned off.
        #[arg(long)]
        disabled: bool,
        #[command(flatten)]
        place: ServerArgs,
    },
    /// Change an endpoint.
    #[command(
        after_help = "Example: signalbox webhooks update 00000000-0000-0000-0000-000000000001 --enable --catch-up"
    )]
    Update {
        /// The id of the endpoint.
        id: String,
        /// The URL that messages are sent to.
        #[arg(long)]
        url: Option<String>,
        /// The events to send.
        #[arg(
            long = "event",
            value_name = "NAME",
            conflicts_with_all = ["all_events", "default_events"]
        )]
        events: Vec<String>,
        /// Send all events that the server has now, also the ones that the public API lacks.
        #[arg(long, conflicts_with = "default_events")]
        all_events: bool,
        /// Send the events of the public API.
        #[arg(long)]
        default_events: bool,
        /// A description.
        #[arg(long)]
        description: Option<String>,
        /// Turn it on.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Turn it off.
        #[arg(long)]
        disable: bool,
        /// Also send the events that happened while it was off.
        #[arg(long, requires = "enable")]
        catch_up: bool,
        #[command(flatten)]
        place: ServerArgs,
    },
    /// Delete an endpoint with its deliveries.
    #[command(
        after_help = "Example: signalbox webhooks delete 00000000-0000-0000-0000-000000000001"
    )]
    Delete {
        /// The id of the endpoint.
        id: String,
        #[command(flatten)]
        place: ServerArgs,
    },
    /// Replace the secret of an endpoint; messages are signed with both for the overlap.
    #[command(
        after_help = "Example: signalbox webhooks rotate 00000000-0000-0000-0000-000000000001 --overlap-hours 24"
    )]
    Rotate {
        /// The id of the endpoint.
        id: String,
        /// Hours for which the old secret stays valid; 0 revokes it immediately.
        #[arg(long, default_value_t = 24)]
        overlap_hours: u32,
        #[command(flatten)]
        place: ServerArgs,
    },
    /// Send an example of an event.
    #[command(
        after_help = "Example: signalbox webhooks test 00000000-0000-0000-0000-000000000001 --event pull_request.failed"
    )]
    Test {
        /// The id of the endpoint.
        id: String,
        /// The name of the event.
        #[arg(long)]
        event: Option<String>,
        #[command(flatten)]
        place: ServerArgs,
    },
    /// List deliveries, newest first.
    #[command(
        after_help = "Example: signalbox webhooks deliveries 00000000-0000-0000-0000-000000000001 --state failed"
    )]
    Deliveries {
        /// The id of the endpoint.
        id: String,
        /// Only deliveries in this state: pending, delivered, failed or aborted.
        #[arg(long)]
        state: Option<String>,
        /// The most deliveries to list.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        #[command(flatten)]
        place: ServerArgs,
    },
    /// Resend messages under the same ids.
    #[command(
        after_help = "Example: signalbox webhooks replay 00000000-0000-0000-0000-000000000001 --failed-since 2026-01-31T12:00:00Z"
    )]
    Replay {
        /// The id of the endpoint.
        id: String,
        /// Resend this message.
        #[arg(long, conflicts_with_all = ["failed_since", "since"])]
        message: Option<String>,
        /// Resend failed messages that were created at this time or later.
        #[arg(long, value_name = "TIME", conflicts_with = "since")]
        failed_since: Option<String>,
        /// Resend all messages that were created at this time or later.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// With --since: only messages that were created at this time or earlier.
        #[arg(long, value_name = "TIME", requires = "since")]
        until: Option<String>,
        #[command(flatten)]
        place: ServerArgs,
    },
}

/// The names of all events that the server has.
async fn known_events(client: &Client) -> Result<Vec<String>, CliError> {
    Ok(client.webhooks().await?.value.known_events)
}

pub async fn webhooks(action: Webhooks) -> Result<(), CliError> {
    match action {
        Webhooks::List { place } => {
            let found = place.client()?.webhooks().await?.value;
            let items = stream::iter(found.webhooks.into_iter().map(Ok));
            let mut table = Table::new("no webhooks found", &["ID", "STATE…", "URL…", "EVENTS…"]);
            list(items, place.format, &mut table, row).await?;
        }
        Webhooks::Create { url, events, all_events, description, disabled, place } => {
            let client = place.client()?;
            let events = if all_events { known_events(&client).await? } else { events };
            let new = NewWebhook { url, events, description, enabled: !disabled };
            show(&client.create_webhook(&new).await?, place.format, secret);
        }
        Webhooks::Update {
            id,
            url,
            events,
            all_events,
            default_events,
            description,
            enable,
            disable,
            catch_up,
            place,
        } => {
            let client = place.client()?;
            let events = if all_events { known_events(&client).await? } else { events };
            let change = WebhookChange {
                webhook_id: id,
                url,
                events: Some(events).filter(|events| default_events || !events.is_empty()),
                description,
                enabled: (enable || disable).then_some(enable),
                catch_up,
            };
            done(&place, &client.update_webhook(&change).await?, "changed");
        }
        Webhooks::Delete { id, place } => {
            done(&place, &place.client()?.delete_webhook(&id).await?, "deleted");
        }
        Webhooks::Rotate { id, overlap_hours, place } => {
            let made = place.client()?.rotate_webhook_secret(&id, overlap_hours).await?;
            show(&made, place.format, secret);
        }
        Webhooks::Test { id, event, place } => {
            let made = place.client()?.test_webhook(&id, event.as_deref()).await?;
            show(&made, place.format, |made| format!("message {} is queued", made.message_id));
        }
        Webhooks::Deliveries { id, state, limit, place } => {
            let (page_size, page_token) = (limit.clamp(1, PAGE), String::new());
            let query = DeliveriesQuery { webhook_id: id, state, page_size, page_token };
            let deliveries = place.client()?.all_deliveries(query);
            let deliveries = deliveries.take(usize::try_from(limit).unwrap_or(usize::MAX));
            let headers = ["ID", "CREATED", "EVENT", "STATE", "ATTEMPTS", "LAST", "NEXT"];
            let mut table = Table::new("no deliveries found", &headers);
            list(deliveries, place.format, &mut table, delivery_row).await?;
        }
        Webhooks::Replay { id, message, failed_since, since, until, place } => {
            let (webhook_id, message_id) = (id, message);
            let query = ReplayQuery { webhook_id, message_id, failed_since, since, until };
            replay(&place, &query).await?;
        }
    }
    Ok(())
}

impl ServerArgs {
    fn client(&self) -> Result<Client, CliError> {
        self.server.client()
    }
}

fn done(place: &ServerArgs, reply: &Reply<Done>, word: &str) {
    show(reply, place.format, |_| word.to_owned());
}

fn secret(made: &WebhookSecret) -> String {
    let (secret, id) = (&made.secret, &made.webhook.id);
    format!("{secret}\nThe secret is shown only once. The endpoint's id is {id}.")
}

fn row(table: &mut Table, endpoint: Webhook) {
    let state = match (endpoint.enabled, &endpoint.failing_since) {
        (true, None) => "on".to_owned(),
        (true, Some(since)) => format!("failing since {since}"),
        (false, _) => format!("off: {}", endpoint.off_reason.as_deref().unwrap_or_default()),
    };
    let names = &endpoint.events;
    let names = if names.is_empty() { "of the public API".to_owned() } else { names.join(" ") };
    table.row([endpoint.id.into(), state.into(), endpoint.url.into(), names.into()]);
}

fn delivery_row(table: &mut Table, delivery: Delivery) {
    let Delivery { id, created_at, event, state, next_attempt_at, attempts } = delivery;
    let last = attempts.last().map(|last| {
        let outcome = || last.outcome.clone();
        last.status.map_or_else(outcome, |status| status.to_string())
    });
    table.row([
        id.into(),
        Cell::Time(created_at),
        event.into(),
        state.into(),
        attempts.len().to_string().into(),
        last.unwrap_or_default().into(),
        Cell::time(next_attempt_at),
    ]);
}

/// How many messages a command has resent.
#[derive(Serialize)]
struct Total {
    messages: u64,
}

/// Replays until no message is left: one call replays a limited number.
async fn replay(place: &ServerArgs, query: &ReplayQuery) -> Result<(), CliError> {
    let (client, mut messages) = (place.client()?, 0);
    loop {
        let replayed = client.replay(query).await?.value;
        messages += replayed.messages;
        if !replayed.more {
            break;
        }
    }
    let value = Total { messages };
    let json = serde_json::to_value(&value).unwrap_or_default();
    show(&Reply { value, json }, place.format, |total| {
        format!("{} messages are queued", total.messages)
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_and_deliveries_are_one_row_each() {
        let endpoint = json!({
            "id": "1", "url": "https://a.test/", "enabled": false, "offReason": "failing",
            "events": [], "failingSince": "2026-01-01T00:00:00.000Z",
        });
        let mut table = Table::new("", &["ID", "STATE", "URL", "EVENTS"]);
        row(&mut table, serde_json::from_value(endpoint).expect("an endpoint"));
        assert_eq!(
            table.text(None).lines().last(),
            Some("1   off: failing  https://a.test/  of the public API")
        );
        let delivery = json!({
            "id": "2", "createdAt": "2026-01-01T00:00:00.000Z", "event": "a.b", "state": "pending",
            "nextAttemptAt": "2026-01-01T00:00:05.000Z",
            "attempts": [{"status": 500, "outcome": "rejected"}, {"status": null, "outcome": "timed_out"}],
        });
        let mut table = Table::new("", &["ID", "AT", "EVENT", "STATE", "TRIES", "LAST", "NEXT"]);
        delivery_row(&mut table, serde_json::from_value(delivery).expect("a delivery"));
        assert_eq!(
            table.text(Some(100)).lines().last(),
            Some("2   2026-01-01 00:00Z  a.b    pending  2      timed_out  2026-01-01 00:00Z")
        );
    }
}
