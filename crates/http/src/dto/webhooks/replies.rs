//! Endpoints and deliveries in replies. A secret is shown when it is created, and never again.

use serde::Serialize;
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Attempt, Endpoint, Message};
use signalbox_services::{CreatedEndpoint, DeliveryPage, Replayed};
use utoipa::ToSchema;

/// A secret, without its text.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"createdAt": "2026-09-17T10:16:02.000Z", "until": null}))]
pub(crate) struct WebhookSecretReply {
    /// When it was created.
    created_at: String,
    /// When it expires; null for the newest.
    until: Option<String>,
}

/// An endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "id": "00000000-0000-0000-0000-000000000001", "url": "https://hooks.acme.test/signalbox",
    "description": "The bot in #merges", "events": ["pull_request.merged"], "enabled": true,
    "offReason": null, "offSince": null, "failingSince": null,
    "secrets": [{"createdAt": "2026-09-17T10:16:02.000Z", "until": null}],
    "createdAt": "2026-09-17T10:16:02.000Z", "updatedAt": "2026-09-17T10:16:02.000Z"
}))]
pub(crate) struct WebhookReply {
    /// Its id.
    id: String,
    /// The URL that messages are sent to.
    url: String,
    /// A description.
    description: String,
    /// The names of the events to send; the ones of the public API when empty.
    events: Vec<String>,
    /// Whether it is on.
    enabled: bool,
    /// Why it is off: `requested`, `failing` (every attempt failed for five days) or `gone` (the
    /// receiver responded with 410).
    off_reason: Option<&'static str>,
    /// Since when it is off.
    off_since: Option<String>,
    /// The time of the first failure since the last success.
    failing_since: Option<String>,
    /// Its secrets, the newest first.
    secrets: Vec<WebhookSecretReply>,
    /// When it was created.
    created_at: String,
    /// When it was last changed.
    updated_at: String,
}

fn shown(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

impl WebhookReply {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let secret = |secret: &signalbox_domain::webhook::Secret| WebhookSecretReply {
            created_at: secret.created_at.to_string(),
            until: shown(secret.until),
        };
        let (settings, health) = (&endpoint.settings, endpoint.health);
        Self {
            id: endpoint.id.to_string(),
            url: settings.url.clone(),
            description: settings.description.clone(),
            events: settings.kinds.clone(),
            enabled: health.is_on(),
            off_reason: health.off.map(|off| off.reason.as_str()),
            off_since: shown(health.off.map(|off| off.at)),
            failing_since: shown(health.failing_since),
            secrets: endpoint.secrets.iter().map(secret).collect(),
            created_at: endpoint.created_at.to_string(),
            updated_at: endpoint.updated_at.to_string(),
        }
    }
}

/// An endpoint with its newest secret, which is shown only here.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "webhook": {
        "id": "00000000-0000-0000-0000-000000000001", "url": "https://hooks.acme.test/signalbox",
        "description": "The bot in #merges", "events": ["pull_request.merged"], "enabled": true,
        "offReason": null, "offSince": null, "failingSince": null,
        "secrets": [{"createdAt": "2026-09-17T10:16:02.000Z", "until": null}],
        "createdAt": "2026-09-17T10:16:02.000Z", "updatedAt": "2026-09-17T10:16:02.000Z"
    },
    "secret": "whsec_c2lnbmFsYm94LXNpZ25hbGJveC1zaWduYWw="
}))]
pub(crate) struct CreatedWebhookReply {
    /// The endpoint.
    webhook: WebhookReply,
    /// The secret: `whsec_` and base64.
    secret: String,
}

impl CreatedWebhookReply {
    pub(crate) fn of(created: CreatedEndpoint) -> Self {
        Self { webhook: WebhookReply::of(&created.endpoint), secret: created.secret }
    }
}

/// Endpoints.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhooks": [{
        "id": "00000000-0000-0000-0000-000000000001", "url": "https://hooks.acme.test/signalbox",
        "description": "The bot in #merges", "events": ["pull_request.merged"], "enabled": true,
        "offReason": null, "offSince": null, "failingSince": null,
        "secrets": [{"createdAt": "2026-09-17T10:16:02.000Z", "until": null}],
        "createdAt": "2026-09-17T10:16:02.000Z", "updatedAt": "2026-09-17T10:16:02.000Z"
    }],
    "knownEvents": ["pull_request.merged", "queue.state_changed"],
    "defaultEvents": ["pull_request.merged"]
}))]
pub(crate) struct WebhooksReply {
    /// In the order of creation.
    webhooks: Vec<WebhookReply>,
    /// The names of all events.
    known_events: Vec<String>,
    /// The names of the events that are sent to an endpoint without a list: the ones of the public
    /// API.
    default_events: Vec<String>,
}

impl WebhooksReply {
    pub(crate) fn of(
        endpoints: &[Endpoint],
        known_events: Vec<String>,
        default_events: Vec<String>,
    ) -> Self {
        let webhooks = endpoints.iter().map(WebhookReply::of).collect();
        Self { webhooks, known_events, default_events }
    }
}

/// A header that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HeaderReply {
    /// Its name.
    name: String,
    /// Its value; signatures are hidden.
    value: String,
}

/// A delivery attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptReply {
    /// The number of the attempt, from 1.
    number: u32,
    /// When it began.
    at: String,
    /// How long it took, in milliseconds.
    duration_ms: i64,
    /// The outcome: `delivered`, `rejected`, `timed_out`, `unreachable` or `forbidden`.
    outcome: &'static str,
    /// The status of the response; null without one.
    status: Option<u16>,
    /// Why there was no response.
    error: Option<String>,
    /// The headers that were sent.
    request_headers: Vec<HeaderReply>,
    /// The beginning of the response body, at most 4096 bytes.
    response: String,
}

impl AttemptReply {
    fn of(attempt: &Attempt) -> Self {
        let header = |(name, value): &(String, String)| HeaderReply {
            name: name.clone(),
            value: value.clone(),
        };
        Self {
            number: attempt.number,
            at: attempt.at.to_string(),
            duration_ms: attempt.took.millis(),
            outcome: attempt.outcome.as_str(),
            status: attempt.status,
            error: attempt.error.clone(),
            request_headers: attempt.headers.iter().map(header).collect(),
            response: attempt.response.clone(),
        }
    }
}

/// A message to an endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeliveryReply {
    /// The message's id, the same in every attempt.
    id: String,
    /// The event.
    event: String,
    /// The event's id.
    event_id: String,
    /// The state: `pending`, `delivered`, `failed` or `aborted`.
    state: &'static str,
    /// When it was created.
    created_at: String,
    /// When it was delivered, failed or was aborted.
    ended_at: Option<String>,
    /// The time of the next attempt.
    next_attempt_at: Option<String>,
    /// The attempts, oldest first.
    attempts: Vec<AttemptReply>,
    /// The body, exactly as it is sent.
    body: String,
}

/// A page of deliveries.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "deliveries": [{
        "id": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "event": "pull_request.merged",
        "eventId": "4f0e9c1e-8a55-5d0f-9b1c-2a35b0a6f0d2", "state": "delivered",
        "createdAt": "2026-09-17T10:16:02.000Z", "endedAt": "2026-09-17T10:16:03.000Z",
        "nextAttemptAt": null,
        "attempts": [{
            "number": 1, "at": "2026-09-17T10:16:02.000Z", "durationMs": 120,
            "outcome": "delivered", "status": 200, "error": null,
            "requestHeaders": [{"name": "content-type", "value": "application/json"}],
            "response": "ok"
        }],
        "body": "{\"type\":\"pull_request.merged\"}"
    }],
    "nextPageToken": null
}))]
pub(crate) struct DeliveriesReply {
    /// Newest first.
    deliveries: Vec<DeliveryReply>,
    /// The token of the next page; null on the last one.
    next_page_token: Option<String>,
}

impl DeliveriesReply {
    pub(crate) fn of(page: &DeliveryPage) -> Self {
        let delivery = |(message, attempts): &(Message, Vec<Attempt>)| DeliveryReply {
            id: message.id.to_string(),
            event: message.kind.clone(),
            event_id: message.event.to_string(),
            state: message.state.as_str(),
            created_at: message.created_at.to_string(),
            ended_at: shown(message.ended_at),
            next_attempt_at: shown(message.next_at),
            attempts: attempts.iter().map(AttemptReply::of).collect(),
            body: message.payload.clone(),
        };
        let last = page.messages.last().filter(|_| page.more);
        let token =
            |message: &Message| format!("{}.{}", message.created_at.unix_micros(), message.id);
        Self {
            deliveries: page.messages.iter().map(delivery).collect(),
            next_page_token: last.map(|(message, _)| token(message)),
        }
    }
}

/// A queued test message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"messageId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"}))]
pub(crate) struct TestSentReply {
    /// The message.
    message_id: String,
}

impl TestSentReply {
    pub(crate) fn of(message: &Message) -> Self {
        Self { message_id: message.id.to_string() }
    }
}

/// The resent messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"messages": 12, "more": false}))]
pub(crate) struct ReplayedReply {
    /// How many messages.
    messages: u64,
    /// Whether there may be more messages than one call replays: then call again.
    more: bool,
}

impl ReplayedReply {
    pub(crate) const fn of(replayed: Replayed) -> Self {
        Self { messages: replayed.messages, more: replayed.more }
    }
}
