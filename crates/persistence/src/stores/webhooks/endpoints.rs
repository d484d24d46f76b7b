//! Rows of endpoints: queries and changes.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::ids::OrgId;
use signalbox_domain::webhook::{Endpoint, EndpointId, Message};
use uuid::Uuid;

use super::super::Conn;
use super::rows::{EndpointRow, MessageRow, NewEndpoint};
use crate::error::DbError;
use crate::schema::{orgs, webhook_endpoints, webhook_messages};
use crate::sql_types::Sql;

pub(super) async fn create(
    conn: &mut Conn,
    endpoint: Endpoint,
    most: u32,
) -> Result<bool, DbError> {
    // Serializes concurrent calls, so that each counts the other's endpoint.
    let org = endpoint.org;
    diesel::update(orgs::table.find(Sql(org)))
        .set(orgs::created_at.eq(orgs::created_at))
        .execute(&mut *conn)
        .await?;
    let there: i64 = webhook_endpoints::table
        .filter(webhook_endpoints::org_id.eq(Sql(org)))
        .count()
        .get_result(&mut *conn)
        .await?;
    if there >= i64::from(most) {
        return Ok(false);
    }
    let row = NewEndpoint::of(&endpoint)?;
    diesel::insert_into(webhook_endpoints::table).values(row).execute(conn).await?;
    Ok(true)
}

pub(super) async fn find(
    conn: &mut Conn,
    org: OrgId,
    id: EndpointId,
) -> Result<Option<Endpoint>, DbError> {
    let row: Option<EndpointRow> = webhook_endpoints::table
        .find(Sql(id))
        .filter(webhook_endpoints::org_id.eq(Sql(org)))
        .select(EndpointRow::as_select())
        .first(conn)
        .await
        .optional()?;
    row.map(EndpointRow::into_endpoint).transpose()
}

pub(super) async fn list(conn: &mut Conn, org: OrgId) -> Result<Vec<Endpoint>, DbError> {
    let rows: Vec<EndpointRow> = webhook_endpoints::table
        .filter(webhook_endpoints::org_id.eq(Sql(org)))
        .order((webhook_endpoints::created_at, webhook_endpoints::id))
        .select(EndpointRow::as_select())
        .load(conn)
        .await?;
    rows.into_iter().map(EndpointRow::into_endpoint).collect()
}

pub(super) async fn every(
    conn: &mut Conn,
    after: Option<EndpointId>,
    limit: u32,
) -> Result<Vec<Endpoint>, DbError> {
    let after = after.unwrap_or(EndpointId(Uuid::nil()));
    let rows: Vec<EndpointRow> = webhook_endpoints::table
        .filter(webhook_endpoints::id.gt(Sql(after)))
        .order(webhook_endpoints::id)
        .limit(i64::from(limit))
        .select(EndpointRow::as_select())
        .load(conn)
        .await?;
    rows.into_iter().map(EndpointRow::into_endpoint).collect()
}

pub(super) async fn save(conn: &mut Conn, endpoint: Endpoint) -> Result<bool, DbError> {
    let row = NewEndpoint::of(&endpoint)?;
    let same = webhook_endpoints::table
        .find(row.id)
        .filter(webhook_endpoints::org_id.eq(row.org_id))
        .filter(webhook_endpoints::version.eq(row.version));
    let saved = diesel::update(same)
        .set((
            webhook_endpoints::version.eq(row.version + 1),
            webhook_endpoints::position.eq(row.position),
            webhook_endpoints::failing_since.eq(row.failing_since),
            webhook_endpoints::off_reason.eq(row.off_reason),
            webhook_endpoints::off_at.eq(row.off_at),
            webhook_endpoints::document.eq(row.document),
        ))
        .execute(conn)
        .await?;
    Ok(saved == 1)
}

pub(super) async fn delete(conn: &mut Conn, org: OrgId, id: EndpointId) -> Result<bool, DbError> {
    let row = webhook_endpoints::table.find(Sql(id)).filter(webhook_endpoints::org_id.eq(Sql(org)));
    Ok(diesel::delete(row).execute(conn).await? == 1)
}

pub(super) async fn waiting(conn: &mut Conn, org: OrgId, id: EndpointId) -> Result<u64, DbError> {
    let waiting: i64 = webhook_messages::table
        .filter(webhook_messages::endpoint_id.eq(Sql(id)))
        .filter(webhook_messages::org_id.eq(Sql(org)))
        .filter(webhook_messages::next_at.is_not_null())
        .count()
        .get_result(conn)
        .await?;
    Ok(u64::try_from(waiting).unwrap_or(0))
}

pub(super) async fn enqueue(
    conn: &mut Conn,
    (org, id): (OrgId, EndpointId),
    (from, to): (i64, i64),
    messages: Vec<Message>,
) -> Result<bool, DbError> {
    let there = webhook_endpoints::table
        .find(Sql(id))
        .filter(webhook_endpoints::org_id.eq(Sql(org)))
        .filter(webhook_endpoints::position.eq(from))
        .filter(webhook_endpoints::off_reason.is_null());
    let moved = i64::from(from != to);
    let moved = diesel::update(there).set((
        webhook_endpoints::position.eq(to),
        webhook_endpoints::version.eq(webhook_endpoints::version + moved),
    ));
    if moved.execute(&mut *conn).await? == 0 {
        return Ok(false);
    }
    let own = |message: &&Message| message.org == org && message.endpoint == id;
    let rows: Vec<MessageRow> = messages.iter().filter(own).map(MessageRow::of).collect();
    for row in rows {
        diesel::insert_into(webhook_messages::table)
            .values(row)
            .on_conflict((webhook_messages::endpoint_id, webhook_messages::id))
            .do_nothing()
            .execute(&mut *conn)
            .await?;
    }
    Ok(true)
}
