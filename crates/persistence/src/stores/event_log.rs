//! The store of the event log. Events are written in the transaction of their state.

use async_trait::async_trait;
use diesel::dsl::max;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{EventLog, EventRecord, PublicEvent, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::super::{in_turn_in_log, take_turn_in_log};
use super::bulk::{Script, Target, bulk_rows};
use super::{Conn, Store};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::event_log;
use crate::sql_types::Sql;
use crate::statement::Statement;

bulk_rows! {
    /// The row of an event.
    LOG = EventRow in "event_log" {
        id: Uuid, org_id: OrgId, repo_id: RepoId, kind: &'static str, at: Timestamp,
        payload: String, request_id: Option<String>,
    } "";
}

impl EventRow {
    pub(super) fn of(org: OrgId, repo: RepoId, event: &EventRecord) -> Self {
        Self {
            id: event.id,
            org_id: org,
            repo_id: repo,
            kind: event.kind,
            at: event.at,
            payload: event.payload.clone(),
            request_id: event.request.clone(),
        }
    }
}

/// The statements that write events at the end of a transaction. Writers of an organization are
/// serialized from here to their commit, so that positions become visible in order.
pub(super) fn inserts(rows: &[EventRow]) -> Result<Vec<Statement>, DbError> {
    let (before, condition) = in_turn_in_log();
    LOG.inserts_if(&before, condition, rows)
}

/// Writes events as [`inserts`] does.
pub(super) async fn write(conn: &mut Conn, org: OrgId, rows: &[EventRow]) -> Result<(), DbError> {
    if rows.is_empty() {
        return Ok(());
    }
    take_turn_in_log(conn, org).await?;
    LOG.insert(conn, rows).await
}

/// Adds events to a script for [`write_later`].
pub(super) fn add_to(script: &mut Script, rows: &[EventRow]) -> Result<(), DbError> {
    script.insert(&LOG, rows)
}

/// Writes events as [`write`] does.
pub(super) async fn write_later(
    conn: &mut Conn,
    org: OrgId,
    script: Script,
) -> Result<(), DbError> {
    if script.is_empty() {
        return Ok(());
    }
    take_turn_in_log(conn, org).await?;
    script.execute(conn).await
}

type Row = (i64, Uuid, Option<RepoId>, String, Timestamp, String, Option<String>);

fn event(org: OrgId, (position, id, repo, kind, at, payload, request): Row) -> PublicEvent {
    PublicEvent { position, id, org, repo, kind, at, payload, request }
}

#[async_trait]
impl EventLog for Store {
    async fn after(
        &self,
        org: OrgId,
        position: i64,
        kinds: Option<&[String]>,
        limit: u32,
    ) -> Result<Vec<PublicEvent>, StoreError> {
        let mut conn = self.connection(org).await?;
        let mut query = event_log::table
            .filter(event_log::org_id.eq(Sql(org)))
            .filter(event_log::position.gt(position))
            .order(event_log::position)
            .limit(i64::from(limit))
            .select((
                event_log::position,
                event_log::id,
                event_log::repo_id,
                event_log::kind,
                event_log::at,
                event_log::payload,
                event_log::request_id,
            ))
            .into_boxed();
        if let Some(kinds) = kinds {
            query = query.filter(event_log::kind.eq_any(kinds.to_vec()));
        }
        let rows: Vec<Row> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(|row| event(org, row)).collect())
    }

    async fn event(&self, org: OrgId, id: Uuid) -> Result<Option<PublicEvent>, StoreError> {
        let mut conn = self.connection(org).await?;
        let row: Option<Row> = event_log::table
            .filter(event_log::org_id.eq(Sql(org)))
            .filter(event_log::id.eq(Sql(id)))
            .select((
                event_log::position,
                event_log::id,
                event_log::repo_id,
                event_log::kind,
                event_log::at,
                event_log::payload,
                event_log::request_id,
            ))
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|row| event(org, row)))
    }

    async fn newest(&self, org: OrgId) -> Result<i64, StoreError> {
        let mut conn = self.connection(org).await?;
        let newest: Option<i64> = event_log::table
            .filter(event_log::org_id.eq(Sql(org)))
            .select(max(event_log::position))
            .first(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(newest.unwrap_or(0))
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let old: Vec<i64> = event_log::table
            .filter(event_log::at.lt(Sql(before)))
            .order((event_log::at, event_log::position))
            .limit(i64::from(limit))
            .select(event_log::position)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let mut gone = 0;
        for piece in super::bulk::pieces(&old) {
            let rows = event_log::table.filter(event_log::position.eq_any(piece.to_vec()));
            let deleted = diesel::delete(rows).execute(&mut conn).await.map_err(DbError::from)?;
            gone += u64::try_from(deleted).unwrap_or(0);
        }
        Ok(gone)
    }
}
