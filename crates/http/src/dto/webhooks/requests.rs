//! Requests about webhooks. Unknown keys are ignored.

use serde::Deserialize;
use signalbox_domain::ports::MessageFilter;
use signalbox_domain::time::{Span, Timestamp, Window};
use signalbox_domain::webhook::{EndpointId, EndpointSettings, MessageState};
use signalbox_services::{EndpointChange, Replay};
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::field::{Errors, Field, object_form};
use super::super::forms::{Count, Flag, List, Text, Time};
use super::super::place::Request;
use super::super::shapes::{EventWord, HookText};
use super::super::words::MessageStateWord;

/// The largest and the default page size, in deliveries.
const PAGE: (u32, u32) = (100, 20);
/// The longest and the default overlap of a replaced secret, in hours.
const OVERLAP: (u32, u32) = (24 * 30, 24);

fn id(pointer: &str, field: Field<Text>, errors: &mut Errors) -> Option<Uuid> {
    let Text(text) = errors.required(pointer, field)?;
    errors.keep(pointer, text.parse().map_err(|_| "must be the id of an endpoint or a message"))
}

fn endpoint(field: Field<Text>, errors: &mut Errors) -> Option<EndpointId> {
    id("/webhookId", field, errors).map(EndpointId)
}

/// The names of a filter. `None`: it is omitted or invalid.
fn kinds(field: Field<List<Text>>, errors: &mut Errors) -> Option<Vec<String>> {
    let List(items) = errors.optional("/events", field)?;
    let mut kinds = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let Text(kind) = errors.required(&format!("/events/{at}"), item)?;
        kinds.push(kind);
    }
    Some(kinds)
}

/// A new endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "url": "https://hooks.acme.test/signalbox", "description": "The bot in #merges",
    "events": ["pull_request.merged", "pull_request.failed"], "enabled": true
}))]
pub(crate) struct CreateWebhookRequest {
    /// The URL that messages are sent to.
    #[schema(value_type = HookText, required)]
    url: Field<Text>,
    /// A description; at most 500 characters, none of them a control character.
    #[schema(value_type = Option<String>, max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    description: Field<Text>,
    /// The names of the events to send; the ones of the public API when omitted or empty.
    #[schema(value_type = Option<Vec<EventWord>>, max_items = 100)]
    events: Field<List<Text>>,
    /// Whether the endpoint is on; default `true`.
    #[schema(value_type = Option<bool>)]
    enabled: Field<Flag>,
}

/// A new endpoint, checked.
#[derive(Debug)]
pub(crate) struct Create {
    pub(crate) settings: EndpointSettings,
    pub(crate) enabled: bool,
}

impl Request for CreateWebhookRequest {
    type Checked = Create;

    fn check(self, errors: &mut Errors) -> Option<Create> {
        let url = errors.required("/url", self.url);
        let description = errors.optional("/description", self.description);
        let kinds = kinds(self.events, errors).unwrap_or_default();
        let enabled = errors.optional("/enabled", self.enabled).is_none_or(|it| it.0);
        let description = description.map(|it| it.0).unwrap_or_default();
        Some(Create { settings: EndpointSettings { url: url?.0, description, kinds }, enabled })
    }
}

/// A request without further fields.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({}))]
pub(crate) struct ListWebhooksRequest {}

impl Request for ListWebhooksRequest {
    type Checked = ();

    fn check(self, _: &mut Errors) -> Option<()> {
        Some(())
    }
}

/// A request about an endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"webhookId": "00000000-0000-0000-0000-000000000001"}))]
pub(crate) struct WebhookRequest {
    /// The endpoint.
    #[schema(value_type = String, required, format = Uuid)]
    webhook_id: Field<Text>,
}

impl Request for WebhookRequest {
    type Checked = EndpointId;

    fn check(self, errors: &mut Errors) -> Option<EndpointId> {
        endpoint(self.webhook_id, errors)
    }
}

/// A change of an endpoint; omitted fields are unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhookId": "00000000-0000-0000-0000-000000000001", "enabled": true, "catchUp": true
}))]
pub(crate) struct UpdateWebhookRequest {
    /// The endpoint.
    #[schema(value_type = String, required, format = Uuid)]
    webhook_id: Field<Text>,
    /// The URL that messages are sent to.
    #[schema(value_type = Option<HookText>)]
    url: Field<Text>,
    /// A description; at most 500 characters, none of them a control character.
    #[schema(value_type = Option<String>, max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    description: Field<Text>,
    /// The names of the events to send; the ones of the public API when empty.
    #[schema(value_type = Option<Vec<EventWord>>, max_items = 100)]
    events: Field<List<Text>>,
    /// Whether it is on. Turning it on clears earlier failures.
    #[schema(value_type = Option<bool>)]
    enabled: Field<Flag>,
    /// With `enabled: true`: also send the events that happened while it was off and are still
    /// kept.
    #[schema(value_type = Option<bool>)]
    catch_up: Field<Flag>,
}

impl Request for UpdateWebhookRequest {
    type Checked = (EndpointId, EndpointChange);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let id = endpoint(self.webhook_id, errors);
        let change = EndpointChange {
            url: errors.optional("/url", self.url).map(|it| it.0),
            description: errors.optional("/description", self.description).map(|it| it.0),
            kinds: kinds(self.events, errors),
            enabled: errors.optional("/enabled", self.enabled).map(|it| it.0),
            catch_up: errors.optional("/catchUp", self.catch_up).is_some_and(|it| it.0),
        };
        Some((id?, change))
    }
}

/// A new secret for an endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhookId": "00000000-0000-0000-0000-000000000001", "overlapHours": 24
}))]
pub(crate) struct RotateWebhookRequest {
    /// The endpoint.
    #[schema(value_type = String, required, format = Uuid)]
    webhook_id: Field<Text>,
    /// Hours for which messages are signed with the old secret too; default 24, at most 720.
    #[schema(value_type = Option<u32>, maximum = 720)]
    overlap_hours: Field<Count>,
}

impl Request for RotateWebhookRequest {
    type Checked = (EndpointId, Span);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let id = endpoint(self.webhook_id, errors);
        let (most, usual) = OVERLAP;
        let hours = errors.optional("/overlapHours", self.overlap_hours).map_or(usual, |it| it.0);
        if hours > most {
            errors.add("/overlapHours", format!("must be from 0 to {most}, but is {hours}"));
        }
        Some((id?, Span::hours(hours)))
    }
}

/// A test of an endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhookId": "00000000-0000-0000-0000-000000000001", "event": "pull_request.merged"
}))]
pub(crate) struct TestWebhookRequest {
    /// The endpoint.
    #[schema(value_type = String, required, format = Uuid)]
    webhook_id: Field<Text>,
    /// The event whose example is sent; default `pull_request.merged`.
    #[schema(value_type = Option<EventWord>)]
    event: Field<Text>,
}

impl Request for TestWebhookRequest {
    type Checked = (EndpointId, Option<String>);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let id = endpoint(self.webhook_id, errors);
        let event = errors.optional("/event", self.event).map(|it| it.0);
        Some((id?, event))
    }
}

/// A request for deliveries.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhookId": "00000000-0000-0000-0000-000000000001", "state": "failed", "pageSize": 20
}))]
pub(crate) struct DeliveriesRequest {
    /// The endpoint.
    #[schema(value_type = String, required, format = Uuid)]
    webhook_id: Field<Text>,
    /// Only deliveries in this state: `pending`, `delivered`, `failed` or `aborted`.
    #[schema(value_type = Option<MessageStateWord>)]
    state: Field<Text>,
    /// Only deliveries of this event.
    #[schema(value_type = Option<EventWord>)]
    event: Field<Text>,
    /// Only deliveries that were created at this time or later.
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Field<Time>,
    /// Only deliveries that were created at this time or earlier.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Field<Time>,
    /// The page size, in deliveries; default 20.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100)]
    page_size: Field<Count>,
    /// The token of the previous page; omitted for the first.
    #[schema(value_type = Option<String>, pattern = r"^([0-9]{1,16}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$")]
    page_token: Field<Text>,
}

/// A checked request for deliveries.
#[derive(Debug)]
pub(crate) struct Deliveries {
    pub(crate) id: EndpointId,
    pub(crate) filter: MessageFilter,
    pub(crate) after: Option<(Timestamp, Uuid)>,
    pub(crate) page_size: u32,
}

fn place(token: &str) -> Option<(Timestamp, Uuid)> {
    let (at, id) = token.split_once('.')?;
    Some((Timestamp::from_unix_micros(at.parse().ok()?), id.parse().ok()?))
}

impl Request for DeliveriesRequest {
    type Checked = Deliveries;

    fn check(self, errors: &mut Errors) -> Option<Deliveries> {
        let id = endpoint(self.webhook_id, errors);
        let state = errors.optional("/state", self.state).and_then(|Text(word)| {
            let wrong = "must be pending, delivered, failed or aborted";
            errors.keep("/state", MessageState::parse(&word).ok_or(wrong))
        });
        let kind = errors.optional("/event", self.event).map(|it| it.0);
        let since = errors.optional("/since", self.since).map(|it| it.0);
        let until = errors.optional("/until", self.until).map(|it| it.0);
        let (most, usual) = PAGE;
        let page_size = errors.optional("/pageSize", self.page_size).map_or(usual, |it| it.0);
        if !(1..=most).contains(&page_size) {
            errors.add("/pageSize", format!("must be from 1 to {most}, but is {page_size}"));
        }
        let token = errors.optional("/pageToken", self.page_token);
        let after = token.filter(|Text(token)| !token.is_empty()).and_then(|Text(token)| {
            let wrong = "must be the token of a previous page";
            errors.keep("/pageToken", place(&token).ok_or(wrong))
        });
        let filter = MessageFilter { state, kind, made: Window::inclusive(since, until) };
        Some(Deliveries { id: id?, filter, after, page_size })
    }
}

/// Which messages to resend: one message, all that failed since a time, or all of a period.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "webhookId": "00000000-0000-0000-0000-000000000001", "failedSince": "2026-09-17T10:16:02Z"
}))]
pub(crate) struct ReplayWebhookRequest {
    /// The endpoint.
    #[schema(value_type = String, required, format = Uuid)]
    webhook_id: Field<Text>,
    /// This message.
    #[schema(value_type = Option<String>, format = Uuid)]
    message_id: Field<Text>,
    /// The failed ones that were created at this time or later.
    #[schema(value_type = Option<String>, format = DateTime)]
    failed_since: Field<Time>,
    /// All messages that were created at this time or later, in any state.
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Field<Time>,
    /// With `since`: only messages that were created at this time or earlier.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Field<Time>,
}

impl Request for ReplayWebhookRequest {
    type Checked = (EndpointId, Replay);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let endpoint = endpoint(self.webhook_id, errors);
        let message = match self.message_id {
            Field::Absent => None,
            given => Some(id("/messageId", given, errors)?),
        };
        let failed = errors.optional("/failedSince", self.failed_since).map(|it| it.0);
        let since = errors.optional("/since", self.since).map(|it| it.0);
        let until = errors.optional("/until", self.until).map(|it| it.0);
        let replay = match (message, failed, since, until) {
            (Some(message), None, None, None) => Replay::One(message),
            (None, Some(since), None, None) => Replay::Failed(Window::inclusive(Some(since), None)),
            (None, None, Some(since), until) => Replay::All(Window::inclusive(Some(since), until)),
            (None, None, None, _) | (Some(_), _, _, _) | (None, Some(_), _, _) => {
                errors.add("", "must have one of messageId, failedSince and since");
                return None;
            }
        };
        Some((endpoint?, replay))
    }
}

object_form!(
    CreateWebhookRequest,
    ListWebhooksRequest,
    WebhookRequest,
    UpdateWebhookRequest,
    RotateWebhookRequest,
    TestWebhookRequest,
    DeliveriesRequest,
    ReplayWebhookRequest,
);
