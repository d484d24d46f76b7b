//! The audit log.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::audit::AuditRecord;
use signalbox_domain::ids::{OrgId, RepoName, TokenId};
use signalbox_domain::ports::{AuditFilter, AuditLog, AuditPlace, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::bulk::{Target, bulk_rows};
use super::{Conn, Store};
use crate::documents::{Json, Kept, encode, values};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::audit;
use crate::sql_types::{Sql, each};

bulk_rows! {
    /// The row of a record.
    AUDIT = AuditRow in "audit" {
        id: Uuid, org_id: OrgId, at: Timestamp, action: &'static str, token_id: Option<TokenId>,
        object: String, repo: Option<String>, document: Json,
    } "";
}

/// The key of a repository's records.
fn lookup(repo: &RepoName) -> String {
    repo.key(true).to_string()
}

impl AuditRow {
    pub(super) fn of(record: &AuditRecord) -> Result<Self, DbError> {
        Ok(Self {
            id: record.id,
            org_id: record.org,
            at: record.at,
            action: record.action.as_str(),
            token_id: record.actor.token(),
            object: record.object.clone(),
            repo: record.repo.as_ref().map(lookup),
            document: encode(record)?,
        })
    }

    /// Writes it inside a transaction.
    pub(super) async fn insert(&self, conn: &mut Conn) -> Result<(), DbError> {
        AUDIT.insert(conn, std::slice::from_ref(self)).await
    }
}

/// The record of a change, if there is one.
pub(super) struct Note(Option<AuditRow>);

/// Prepares the record of a change.
pub(super) fn noted(record: Option<&AuditRecord>) -> Result<Note, DbError> {
    Ok(Note(record.map(AuditRow::of).transpose()?))
}

impl Note {
    /// Writes the record in the transaction of the change if `changed`; returns `changed`.
    pub(super) async fn when(&self, changed: bool, conn: &mut Conn) -> Result<bool, DbError> {
        match &self.0 {
            Some(row) if changed => row.insert(conn).await?,
            Some(_) | None => {}
        }
        Ok(changed)
    }
}

#[async_trait]
impl AuditLog for Store {
    async fn append(&self, record: &AuditRecord) -> Result<(), StoreError> {
        let row = AuditRow::of(record)?;
        let job = self
            .write(record.org, Box::new(move |conn| async move { row.insert(conn).await }.boxed()));
        Ok(job.await?)
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        filter: &AuditFilter,
        before: Option<AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let mut query = audit::table.select(audit::document).into_boxed();
        if let Some(org) = org {
            query = query.filter(audit::org_id.eq(Sql(org)));
        }
        if let Some(action) = filter.action {
            query = query.filter(audit::action.eq(action.as_str()));
        }
        if let Some(token) = filter.token {
            query = query.filter(audit::token_id.eq(Sql(token)));
        }
        if let Some(object) = &filter.object {
            query = query.filter(audit::object.eq(object));
        }
        if !filter.repos.is_empty() {
            query = query.filter(audit::repo.eq_any(filter.repos.iter().map(lookup)));
        }
        if let Some(since) = filter.window.since {
            query = query.filter(audit::at.ge(Sql(since)));
        }
        if let Some(until) = filter.window.until {
            query = query.filter(audit::at.lt(Sql(until)));
        }
        if let Some(place) = before {
            let at = place.at;
            let same = audit::at.eq(Sql(at)).and(audit::id.lt(Sql(place.id)));
            query = query.filter(audit::at.lt(Sql(at)).or(same));
        }
        let mut conn = self.connection(org).await?;
        let rows: Vec<Kept<AuditRecord>> = query
            .order((audit::at.desc(), audit::id.desc()))
            .limit(i64::from(limit))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old: Vec<Uuid> = audit::table
                        .filter(audit::at.lt(Sql(before)))
                        .order(audit::at)
                        .limit(i64::from(limit))
                        .select(audit::id)
                        .load(conn)
                        .await?;
                    let gone = diesel::delete(audit::table.filter(audit::id.eq_any(each(&old))));
                    Ok(u64::try_from(gone.execute(conn).await?).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }
}
