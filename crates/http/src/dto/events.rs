//! Events in the API.

use serde::Serialize;
use serde_json::Value;
use signalbox_domain::ports::PublicEvent;
use signalbox_services::{EventService, EventsRead};
use utoipa::ToSchema;

use super::field::Errors;
use crate::problem::Problem;

/// The default page size, in events.
const DEFAULT_LIMIT: u32 = 100;
/// The most events of a page.
const MAX_LIMIT: u32 = 1_000;

/// An event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventReply {
    /// Its position in the log; later events have higher ones.
    #[schema(example = "1042")]
    position: String,
    /// The id of the event, the same in every delivery.
    #[schema(example = "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11")]
    id: String,
    /// The name of the event.
    #[schema(example = "pull_request.merged")]
    r#type: String,
    /// When it was committed.
    timestamp: String,
    /// The payload; `/v1/events/schemas/{type}` describes it.
    #[schema(value_type = Object)]
    payload: Value,
}

impl EventReply {
    fn of(event: PublicEvent) -> Result<Self, Problem> {
        let payload = serde_json::from_str(&event.payload).map_err(|error| {
            tracing::error!(event.id = %event.id, %error, "a payload of the event log is not JSON");
            Problem::internal()
        })?;
        Ok(Self {
            position: event.position.to_string(),
            id: event.id.to_string(),
            r#type: event.kind,
            timestamp: event.at.to_string(),
            payload,
        })
    }
}

/// A page of the event log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "events": [{
        "position": "1042", "id": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11",
        "type": "pull_request.merged", "timestamp": "2026-09-17T10:16:02.000Z",
        "payload": {"type": "pull_request.merged", "pr_number": 42}
    }],
    "next": "1042", "newest": "1042"
}))]
pub(crate) struct EventsReply {
    /// The events, in order.
    events: Vec<EventReply>,
    /// Pass this as `after` to continue. It also advances past events that the token may not see.
    #[schema(example = "1042")]
    next: String,
    /// The newest position; when `next` has reached it, there are no more events yet.
    #[schema(example = "1042")]
    newest: String,
}

impl EventsReply {
    pub(crate) fn of(read: EventsRead) -> Result<Self, Problem> {
        Ok(Self {
            events: read.events.into_iter().map(EventReply::of).collect::<Result<_, _>>()?,
            next: read.next.to_string(),
            newest: read.newest.to_string(),
        })
    }
}

/// A request for events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventsRequest {
    /// Only events after this position; `None` when the request has none.
    pub(crate) after: Option<i64>,
    /// The page size, in events.
    pub(crate) limit: u32,
    /// Only these events; `None`: all.
    pub(crate) kinds: Option<Vec<String>>,
}

impl EventsRequest {
    /// Reads the query. Unknown parameters are ignored.
    pub(crate) fn of(given: &[(String, String)]) -> Result<Self, Problem> {
        let mut errors = Errors::default();
        let mut one = |name: &str| {
            let mut values = given.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
            let value = values.next().filter(|value| !value.is_empty());
            if values.next().is_some() {
                errors.add(format!("/{name}"), "must be given once");
            }
            value
        };
        let (after, limit) = (one("after"), one("limit"));
        let after = after.and_then(|text| {
            let position = position(text).ok_or("must be a position of the event log");
            errors.keep("/after", position)
        });
        let limit = limit.map_or(Some(DEFAULT_LIMIT), |text| {
            let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
            errors.keep("/limit", limit.ok_or("must be a whole number from 1 to 1000"))
        });
        let asked = given.iter().filter(|(key, value)| key == "type" && !value.is_empty());
        let kinds: Vec<String> =
            asked.flat_map(|(_, value)| value.split(',')).map(|it| it.trim().to_owned()).collect();
        for unknown in kinds.iter().filter(|kind| !EventService::kinds().any(|it| it == *kind)) {
            let shown = super::shown(unknown);
            errors.add("/type", format!("must contain only names of events, but has {shown}"));
        }
        let kinds = (!kinds.is_empty()).then_some(kinds);
        errors.finish(limit.map(|limit| Self { after, limit, kinds }))
    }
}

/// Reads a position.
pub(crate) fn position(text: &str) -> Option<i64> {
    text.trim().parse().ok().filter(|position| *position >= 0)
}

/// An event of the catalog.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CatalogEntry {
    /// The name of the event.
    #[schema(example = "pull_request.merged")]
    pub(crate) r#type: String,
    /// When the event is emitted.
    pub(crate) description: String,
    /// The URL of its schema.
    #[schema(example = "/v1/events/schemas/pull_request.merged")]
    pub(crate) schema: String,
}

/// The catalog of events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"events": [{
    "type": "pull_request.merged", "description": "A pull request was merged.",
    "schema": "/v1/events/schemas/pull_request.merged"
}]}))]
pub(crate) struct CatalogReply {
    /// The events.
    pub(crate) events: Vec<CatalogEntry>,
}
