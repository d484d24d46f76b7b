//! Messages and attempts: queries, replays and deletion.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::MessageFilter;
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Attempt, EndpointId, Message, MessageState};
use uuid::Uuid;

use super::super::Conn;
use super::super::bulk::pieces;
use super::rows::MessageRow;
use crate::documents::{Kept, values};
use crate::error::DbError;
use crate::schema::{webhook_attempts, webhook_messages};
use crate::sql_types::{Sql, each};

/// Selects the messages of an endpoint that match a filter.
macro_rules! fitting {
    ($org:expr, $id:expr, $filter:expr) => {{
        let mut query = webhook_messages::table
            .filter(webhook_messages::endpoint_id.eq(Sql($id)))
            .filter(webhook_messages::org_id.eq(Sql($org)))
            .into_boxed();
        if let Some(state) = $filter.state {
            query = query.filter(webhook_messages::state.eq(state.as_str()));
        }
        if let Some(kind) = &$filter.kind {
            query = query.filter(webhook_messages::kind.eq(kind.clone()));
        }
        if let Some(since) = $filter.made.since {
            query = query.filter(webhook_messages::created_at.ge(Sql(since)));
        }
        if let Some(until) = $filter.made.until {
            query = query.filter(webhook_messages::created_at.le(Sql(until)));
        }
        query
    }};
}

pub(super) async fn list(
    conn: &mut Conn,
    (org, id): (OrgId, EndpointId),
    filter: &MessageFilter,
    after: Option<(Timestamp, Uuid)>,
    limit: u32,
) -> Result<Vec<Message>, DbError> {
    let mut query = fitting!(org, id, filter);
    if let Some((at, message)) = after {
        query = query.filter(webhook_messages::created_at.lt(Sql(at)).or(
            webhook_messages::created_at.eq(Sql(at)).and(webhook_messages::id.lt(Sql(message))),
        ));
    }
    let rows: Vec<MessageRow> = query
        .order((webhook_messages::created_at.desc(), webhook_messages::id.desc()))
        .limit(i64::from(limit))
        .select(MessageRow::as_select())
        .load(conn)
        .await?;
    rows.into_iter().map(MessageRow::into_message).collect()
}

pub(super) async fn find(
    conn: &mut Conn,
    (org, id): (OrgId, EndpointId),
    message: Uuid,
) -> Result<Option<Message>, DbError> {
    let row: Option<MessageRow> = webhook_messages::table
        .find((Sql(id), Sql(message)))
        .filter(webhook_messages::org_id.eq(Sql(org)))
        .select(MessageRow::as_select())
        .first(conn)
        .await
        .optional()?;
    row.map(MessageRow::into_message).transpose()
}

pub(super) async fn attempts(
    conn: &mut Conn,
    (org, id): (OrgId, EndpointId),
    messages: &[Uuid],
) -> Result<Vec<Attempt>, DbError> {
    let mut messages = messages.to_vec();
    messages.sort_unstable();
    let mut found = Vec::new();
    for piece in pieces(&messages) {
        let rows: Vec<Kept<Attempt>> = webhook_attempts::table
            .filter(webhook_attempts::endpoint_id.eq(Sql(id)))
            .filter(webhook_attempts::org_id.eq(Sql(org)))
            .filter(webhook_attempts::message_id.eq_any(each(piece)))
            .order((webhook_attempts::message_id, webhook_attempts::number))
            .select(webhook_attempts::document)
            .load(conn)
            .await?;
        found.extend(values(rows));
    }
    Ok(found)
}

/// Makes ended messages pending again, as `Message::replayed` does.
async fn send_again(
    conn: &mut Conn,
    (org, id): (OrgId, EndpointId),
    messages: &[Uuid],
    now: Timestamp,
) -> Result<usize, DbError> {
    let ended = webhook_messages::table
        .filter(webhook_messages::endpoint_id.eq(Sql(id)))
        .filter(webhook_messages::org_id.eq(Sql(org)))
        .filter(webhook_messages::id.eq_any(each(messages)))
        .filter(webhook_messages::next_at.is_null());
    let changed = diesel::update(ended)
        .set((
            webhook_messages::state.eq(MessageState::Pending.as_str()),
            webhook_messages::failures.eq(0),
            webhook_messages::next_at.eq(Sql(now)),
            webhook_messages::ended_at.eq(None::<Timestamp>),
        ))
        .execute(conn)
        .await?;
    Ok(changed)
}

pub(super) async fn replay(
    conn: &mut Conn,
    place: (OrgId, EndpointId),
    filter: &MessageFilter,
    now: Timestamp,
    limit: u32,
) -> Result<u64, DbError> {
    let (org, id) = place;
    let messages: Vec<Uuid> = fitting!(org, id, filter)
        .filter(webhook_messages::next_at.is_null())
        .order((webhook_messages::created_at, webhook_messages::id))
        .limit(i64::from(limit))
        .select(webhook_messages::id)
        .load(&mut *conn)
        .await?;
    let mut replayed = 0;
    for piece in pieces(&messages) {
        replayed += send_again(conn, place, piece, now).await?;
    }
    Ok(u64::try_from(replayed).unwrap_or(0))
}

pub(super) async fn replay_one(
    conn: &mut Conn,
    place: (OrgId, EndpointId),
    message: Uuid,
    now: Timestamp,
) -> Result<bool, DbError> {
    Ok(send_again(conn, place, &[message], now).await? == 1)
}

pub(super) async fn prune(conn: &mut Conn, before: Timestamp, limit: u32) -> Result<u64, DbError> {
    let old: Vec<(EndpointId, Uuid)> = webhook_messages::table
        .filter(webhook_messages::ended_at.lt(Sql(before)))
        .order(webhook_messages::ended_at)
        .limit(i64::from(limit))
        .select((webhook_messages::endpoint_id, webhook_messages::id))
        .load(&mut *conn)
        .await?;
    let mut removed = 0;
    for key in old {
        let row = webhook_messages::table.find((Sql(key.0), Sql(key.1)));
        let still_old = row.filter(webhook_messages::ended_at.lt(Sql(before)));
        removed += diesel::delete(still_old).execute(&mut *conn).await?;
    }
    Ok(u64::try_from(removed).unwrap_or(0))
}
