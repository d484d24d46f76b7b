//! Endpoints, messages and tries as rows.

use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use signalbox_domain::ids::OrgId;
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{
    Endpoint, EndpointId, EndpointSettings, Health, Message, MessageState, Off, OffReason, Secret,
};

use crate::documents::{FORMAT, decode, encode, number, uuid};
use crate::error::DbError;
use crate::schema::{webhook_endpoints, webhook_messages};

/// What of an endpoint nobody searches for.
#[derive(Serialize, Deserialize)]
struct Document {
    settings: EndpointSettings,
    secrets: Vec<Secret>,
    updated_at: Timestamp,
}

#[derive(Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = webhook_endpoints)]
pub(super) struct EndpointRow {
    pub(super) id: String,
    pub(super) org_id: String,
    pub(super) version: i64,
    pub(super) position: i64,
    pub(super) failing_since: Option<i64>,
    pub(super) off_reason: Option<String>,
    pub(super) off_at: Option<i64>,
    pub(super) turn: i64,
    pub(super) served_at: i64,
    pub(super) created_at: i64,
    pub(super) format: i32,
    pub(super) document: String,
}

impl EndpointRow {
    pub(super) fn of(endpoint: &Endpoint) -> Result<Self, DbError> {
        let document = Document {
            settings: endpoint.settings.clone(),
            secrets: endpoint.secrets.clone(),
            updated_at: endpoint.updated_at,
        };
        let health = endpoint.health;
        Ok(Self {
            id: endpoint.id.to_string(),
            org_id: endpoint.org.to_string(),
            version: endpoint.version,
            position: endpoint.cursor,
            failing_since: health.failing_since.map(Timestamp::unix_micros),
            off_reason: health.off.map(|off| off.reason.word().to_owned()),
            off_at: health.off.map(|off| off.at.unix_micros()),
            turn: 0,
            served_at: endpoint.created_at.unix_micros(),
            created_at: endpoint.created_at.unix_micros(),
            format: FORMAT,
            document: encode("webhook endpoint", &document)?,
        })
    }

    pub(super) fn into_endpoint(self) -> Result<Endpoint, DbError> {
        let document: Document = decode("webhook endpoint", self.format, &self.document)?;
        Ok(Endpoint {
            id: EndpointId(uuid("webhook endpoint", &self.id)?),
            org: OrgId(uuid("webhook endpoint", &self.org_id)?),
            version: self.version,
            settings: document.settings,
            secrets: document.secrets,
            health: health(self.failing_since, self.off_reason.as_deref(), self.off_at)?,
            cursor: self.position,
            created_at: Timestamp::from_unix_micros(self.created_at),
            updated_at: document.updated_at,
        })
    }
}

pub(super) fn health(
    failing_since: Option<i64>,
    off_reason: Option<&str>,
    off_at: Option<i64>,
) -> Result<Health, DbError> {
    let unknown = |word: &str| DbError::corrupt("webhook endpoint", format!("{word} is no reason"));
    let reason = |word: &str| OffReason::parse(word).ok_or_else(|| unknown(word));
    let off = match (off_reason, off_at) {
        (Some(word), Some(at)) => {
            Some(Off { reason: reason(word)?, at: Timestamp::from_unix_micros(at) })
        }
        (None, _) | (_, None) => None,
    };
    Ok(Health { failing_since: failing_since.map(Timestamp::from_unix_micros), off })
}

#[derive(Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = webhook_messages)]
pub(super) struct MessageRow {
    endpoint_id: String,
    id: String,
    org_id: String,
    event_id: String,
    position: i64,
    kind: String,
    state: String,
    failures: i32,
    tries: i32,
    next_at: Option<i64>,
    created_at: i64,
    ended_at: Option<i64>,
    payload: String,
    request_id: Option<String>,
}

/// A count for a signed column.
fn count(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

impl MessageRow {
    pub(super) fn of(message: &Message) -> Self {
        Self {
            endpoint_id: message.endpoint.to_string(),
            id: message.id.to_string(),
            org_id: message.org.to_string(),
            event_id: message.event.to_string(),
            position: message.position,
            kind: message.kind.clone(),
            state: message.state.word().to_owned(),
            failures: count(message.failures),
            tries: count(message.tries),
            next_at: message.next_at.map(Timestamp::unix_micros),
            created_at: message.created_at.unix_micros(),
            ended_at: message.ended_at.map(Timestamp::unix_micros),
            payload: message.payload.clone(),
            request_id: message.request.clone(),
        }
    }

    pub(super) fn into_message(self) -> Result<Message, DbError> {
        let what = "webhook message";
        let unknown = || DbError::corrupt(what, format!("{} is no state", self.state));
        Ok(Message {
            org: OrgId(uuid(what, &self.org_id)?),
            endpoint: EndpointId(uuid(what, &self.endpoint_id)?),
            id: uuid(what, &self.id)?,
            event: uuid(what, &self.event_id)?,
            position: self.position,
            state: MessageState::parse(&self.state).ok_or_else(unknown)?,
            kind: self.kind,
            failures: number(what, i64::from(self.failures))?,
            tries: number(what, i64::from(self.tries))?,
            next_at: self.next_at.map(Timestamp::from_unix_micros),
            created_at: Timestamp::from_unix_micros(self.created_at),
            ended_at: self.ended_at.map(Timestamp::from_unix_micros),
            payload: self.payload,
            request: self.request_id,
        })
    }
}

/// What a try changes of a message.
#[derive(AsChangeset)]
#[diesel(table_name = webhook_messages, treat_none_as_null = true)]
pub(super) struct Progress {
    state: String,
    failures: i32,
    tries: i32,
    next_at: Option<i64>,
    ended_at: Option<i64>,
}

impl Progress {
    pub(super) fn of(message: &Message) -> Self {
        let MessageRow { state, failures, tries, next_at, ended_at, .. } = MessageRow::of(message);
        Self { state, failures, tries, next_at, ended_at }
    }
}
