//! `GET /v1/events/stream`.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::{Bytes, Data, Query};
use actix_web::{Error, HttpRequest, HttpResponse};
use futures_util::stream::unfold;
use signalbox_domain::ports::PublicEvent;
use signalbox_domain::token::Caller;
use tokio::time::{Instant, sleep_until, timeout};

use crate::api::Api;
use crate::authenticated::{Authenticated, Credentials as _};
use crate::dto::{EventWord, EventsRequest, PositionText, position};
use crate::event_hub::Listening;
use crate::failures::OfStream;
use crate::problem::{Code, Problem};

/// The interval of keep-alives: proxies close silent connections.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After this time a stream ends and its client reconnects, so that clients spread over the
/// servers.
const LONGEST: Duration = Duration::from_mins(15);
/// The most events that are sent in one batch.
const BATCH: u32 = 200;

/// Follow the public events of the organization as server-sent events.
///
/// Each has its position as `id`, its name as `event` and its payload as `data`. A client that
/// reconnects with `Last-Event-ID` misses nothing. Without a position the stream starts with new
/// events. It ends after 15 minutes; clients of server-sent events reconnect automatically.
#[utoipa::path(
    get,
    path = "/v1/events/stream",
    operation_id = "streamEvents",
    tag = "events",
    params(
        ("after" = Option<PositionText>, Query, description = "Events after this position; without it, and without `Last-Event-ID`, only new events.", example = "1042"),
        ("type" = Option<Vec<EventWord>>, Query, style = Form, explode = false, description = "Only events with these names, separated by commas.", example = "pull_request.merged"),
        ("Last-Event-ID" = Option<PositionText>, Header, description = "The position of the last event that was received; counts before `after`.", example = "1042"),
    ),
    responses((status = OK, description = "The events, as they are emitted.", body = String, content_type = "text/event-stream", example = json!("id: 1042\nevent: pull_request.merged\ndata: {\"type\":\"pull_request.merged\"}\n\n")), OfStream),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    Query(given): Query<Vec<(String, String)>>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let asked = EventsRequest::of(&given)?;
    let last = request.headers().get("last-event-id").and_then(|value| value.to_str().ok());
    let last = match last.filter(|text| !text.is_empty()) {
        Some(text) => Some(position(text).ok_or_else(|| {
            Problem::invalid("/Last-Event-ID", "must be a position of the event log")
        })?),
        None => asked.after,
    };
    let newest = api.events.service.newest(&caller).await?;
    let Some(listening) = api.events.hub.open(caller.org, caller.token) else {
        let words = "too many streams are open, or the server is stopping";
        return Err(Problem::new(Code::TooManyStreams, words));
    };
    let now = Instant::now();
    let follower = Follower {
        api,
        request,
        caller,
        kinds: asked.kinds,
        after: last.unwrap_or(newest),
        listening,
        ends: now + LONGEST,
        begun: false,
    };
    let events = unfold(follower, |mut follower| async move {
        let chunk = follower.next().await?;
        Some((Ok::<Bytes, Error>(chunk), follower))
    });
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(events))
}

/// A stream of events to one client.
struct Follower {
    api: Data<Api>,
    /// Checks the token again before anything is sent.
    request: HttpRequest,
    caller: Arc<Caller>,
    kinds: Option<Vec<String>>,
    after: i64,
    listening: Listening,
    ends: Instant,
    begun: bool,
}

impl Follower {
    /// What is sent next; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            self.begun = true;
            return Some(Bytes::from_static(b": events\nretry: 1000\n\n"));
        }
        loop {
            let service = &self.api.events.service;
            let kinds = self.kinds.as_deref();
            let read = match service.after(&self.caller, self.after, kinds, BATCH).await {
                Ok(read) => read,
                Err(error) => {
                    // The client reconnects, and gets the error then.
                    tracing::warn!(%error, "a stream of events ended with an error");
                    return None;
                }
            };
            let moved = read.next > self.after;
            self.after = read.next;
            if !read.events.is_empty() {
                Arc::<Caller>::authenticate(&self.request).await.ok()?;
                return Some(Bytes::from(text(&read.events)));
            }
            if moved {
                continue;
            }
            tokio::select! {
                rung = timeout(HEARTBEAT, self.listening.rung()) => match rung {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(_) => {
                        Arc::<Caller>::authenticate(&self.request).await.ok()?;
                        return Some(Bytes::from_static(b":\n\n"));
                    }
                },
                () = sleep_until(self.ends) => return None,
            }
        }
    }
}

/// Formats server-sent events. Payloads have one line.
fn text(events: &[PublicEvent]) -> String {
    let mut text = String::new();
    for PublicEvent { position, kind, payload, .. } in events {
        let payload = payload.replace(['\n', '\r'], " ");
        // Writing to a string does not fail.
        write!(text, "id: {position}\nevent: {kind}\ndata: {payload}\n\n").ok();
    }
    text
}
