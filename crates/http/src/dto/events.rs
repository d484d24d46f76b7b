//! Events on the wire.

use serde::Serialize;
use serde_json::Value;
use signalbox_domain::ports::PublicEvent;
use signalbox_services::{EventService, EventsRead};
use utoipa::ToSchema;

use super::field::Errors;
use crate::problem::{Code, Problem};

/// How many events a page has when nobody says.
const DEFAULT_LIMIT: u32 = 100;
/// The most events of a page.
const MAX_LIMIT: u32 = 1_000;

/// An event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventReply {
    /// Its place in the log; later events have higher ones.
    #[schema(example = "1042")]
    position: String,
    /// Its id, the same wherever and however often it is told.
    #[schema(example = "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11")]
    id: String,
    /// What happened.
    #[schema(example = "pull_request.merged")]
    r#type: String,
    /// When.
    timestamp: String,
    /// The payload; `/v1/events/schemas/{type}` describes it.
    #[schema(value_type = Object)]
    payload: Value,
}

impl EventReply {
    fn of(event: PublicEvent) -> Result<Self, Problem> {
        let payload = serde_json::from_str(&event.payload).map_err(|error| {
            tracing::error!(event.id = %event.id, %error, "a payload of the event log is not JSON");
            Problem::new(Code::Internal, "something went wrong; the log has the request id")
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
pub(crate) struct EventsReply {
    /// The events, in order.
    events: Vec<EventReply>,
    /// Give this as `after` to go on. It moves also when no event on the way is yours to see.
    #[schema(example = "1042")]
    next: String,
    /// The newest position; when `next` has reached it, nothing is left for now.
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

/// Which events are asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventsRequest {
    /// After which position; `None`: nothing was said.
    pub(crate) after: Option<i64>,
    /// How many at most.
    pub(crate) limit: u32,
    /// Of which kinds; `None`: all.
    pub(crate) kinds: Option<Vec<String>>,
}

impl EventsRequest {
    /// Reads the query. Parameters that are not known are ignored.
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
            errors.add("/type", format!("must name events of the catalogue, but has {shown}"));
        }
        let kinds = (!kinds.is_empty()).then_some(kinds);
        errors.finish(limit.map(|limit| Self { after, limit, kinds }))
    }
}

/// Reads a position.
pub(crate) fn position(text: &str) -> Option<i64> {
    text.trim().parse().ok().filter(|position| *position >= 0)
}

/// An event of the catalogue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CatalogueEntry {
    /// Its name.
    #[schema(example = "pull_request.merged")]
    pub(crate) r#type: String,
    /// When it is told.
    pub(crate) description: String,
    /// Where its schema is.
    #[schema(example = "/v1/events/schemas/pull_request.merged")]
    pub(crate) schema: String,
}

/// Every event that there is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CatalogueReply {
    /// The events.
    pub(crate) events: Vec<CatalogueEntry>,
}
