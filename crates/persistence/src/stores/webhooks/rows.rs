//! Rows of endpoints, messages and attempts.

use diesel::prelude::*;
use signalbox_domain::ids::OrgId;
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{
    Endpoint, EndpointId, Health, Message, MessageState, Off, OffReason,
};
use uuid::Uuid;

use crate::documents::{EndpointDocument, Json, Kept, encode, number};
use crate::error::DbError;
use crate::schema::{webhook_endpoints, webhook_messages};
use crate::sql_types::Sql;

/// The row of an endpoint, for writing.
#[derive(Insertable)]
#[diesel(table_name = webhook_endpoints)]
pub(super) struct NewEndpoint {
    pub(super) id: Sql<EndpointId>,
    pub(super) org_id: Sql<OrgId>,
    pub(super) version: i64,
    pub(super) position: i64,
    pub(super) failing_since: Option<Sql<Timestamp>>,
    pub(super) off_reason: Option<&'static str>,
    pub(super) off_at: Option<Sql<Timestamp>>,
    pub(super) turn: i64,
    pub(super) served_at: Sql<Timestamp>,
    pub(super) created_at: Sql<Timestamp>,
    pub(super) document: Json,
}

impl NewEndpoint {
    pub(super) fn of(endpoint: &Endpoint) -> Result<Self, DbError> {
        let document = EndpointDocument {
            settings: endpoint.settings.clone(),
            secrets: endpoint.secrets.clone(),
            updated_at: endpoint.updated_at,
        };
        let health = endpoint.health;
        Ok(Self {
            id: Sql(endpoint.id),
            org_id: Sql(endpoint.org),
            version: endpoint.version,
            position: endpoint.cursor,
            failing_since: health.failing_since.map(Sql),
            off_reason: health.off.map(|off| off.reason.as_str()),
            off_at: health.off.map(|off| off.at).map(Sql),
            turn: 0,
            served_at: Sql(endpoint.created_at),
            created_at: Sql(endpoint.created_at),
            document: encode(&document)?,
        })
    }
}

/// The row of an endpoint, for reading.
#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_endpoints)]
pub(super) struct EndpointRow {
    pub(super) id: EndpointId,
    org_id: OrgId,
    version: i64,
    position: i64,
    failing_since: Option<Timestamp>,
    off_reason: Option<String>,
    off_at: Option<Timestamp>,
    pub(super) turn: i64,
    created_at: Timestamp,
    document: Kept<EndpointDocument>,
}

impl EndpointRow {
    pub(super) fn into_endpoint(self) -> Result<Endpoint, DbError> {
        let Kept(document) = self.document;
        Ok(Endpoint {
            id: self.id,
            org: self.org_id,
            version: self.version,
            settings: document.settings,
            secrets: document.secrets,
            health: health(self.failing_since, self.off_reason.as_deref(), self.off_at)?,
            cursor: self.position,
            created_at: self.created_at,
            updated_at: document.updated_at,
        })
    }
}

pub(super) fn health(
    failing_since: Option<Timestamp>,
    off_reason: Option<&str>,
    off_at: Option<Timestamp>,
) -> Result<Health, DbError> {
    let unknown =
        |word: &str| DbError::corrupt("webhook endpoint", format!("unknown reason {word}"));
    let reason = |word: &str| OffReason::parse(word).ok_or_else(|| unknown(word));
    let off = match (off_reason, off_at) {
        (Some(word), Some(at)) => Some(Off { reason: reason(word)?, at }),
        (None, _) | (_, None) => None,
    };
    Ok(Health { failing_since, off })
}

#[derive(Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = webhook_messages)]
pub(super) struct MessageRow {
    endpoint_id: Sql<EndpointId>,
    id: Sql<Uuid>,
    org_id: Sql<OrgId>,
    event_id: Sql<Uuid>,
    position: i64,
    kind: String,
    state: String,
    failures: i32,
    tries: i32,
    next_at: Option<Sql<Timestamp>>,
    created_at: Sql<Timestamp>,
    ended_at: Option<Sql<Timestamp>>,
    payload: String,
    request_id: Option<String>,
}

/// Converts a count for a signed column.
fn count(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

impl MessageRow {
    pub(super) fn of(message: &Message) -> Self {
        Self {
            endpoint_id: Sql(message.endpoint),
            id: Sql(message.id),
            org_id: Sql(message.org),
            event_id: Sql(message.event),
            position: message.position,
            kind: message.kind.clone(),
            state: message.state.as_str().to_owned(),
            failures: count(message.failures),
            tries: count(message.tries),
            next_at: message.next_at.map(Sql),
            created_at: Sql(message.created_at),
            ended_at: message.ended_at.map(Sql),
            payload: message.payload.clone(),
            request_id: message.request.clone(),
        }
    }

    pub(super) fn into_message(self) -> Result<Message, DbError> {
        let what = "webhook message";
        let unknown = || DbError::corrupt(what, format!("unknown state {}", self.state));
        Ok(Message {
            org: self.org_id.0,
            endpoint: self.endpoint_id.0,
            id: self.id.0,
            event: self.event_id.0,
            position: self.position,
            state: MessageState::parse(&self.state).ok_or_else(unknown)?,
            kind: self.kind,
            failures: number(what, i64::from(self.failures))?,
            tries: number(what, i64::from(self.tries))?,
            next_at: self.next_at.map(|Sql(value)| value),
            created_at: self.created_at.0,
            ended_at: self.ended_at.map(|Sql(value)| value),
            payload: self.payload,
            request: self.request_id,
        })
    }
}

/// The columns of a message that an attempt changes.
#[derive(AsChangeset)]
#[diesel(table_name = webhook_messages, treat_none_as_null = true)]
pub(super) struct Progress {
    state: String,
    failures: i32,
    tries: i32,
    next_at: Option<Sql<Timestamp>>,
    ended_at: Option<Sql<Timestamp>>,
}

impl Progress {
    pub(super) fn of(message: &Message) -> Self {
        let MessageRow { state, failures, tries, next_at, ended_at, .. } = MessageRow::of(message);
        Self { state, failures, tries, next_at, ended_at }
    }
}
