//! The store of sessions.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{SessionStore, StoreError};
use signalbox_domain::session::{Session, SessionHash};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::TokenHash;

use super::Store;
use super::accounts::{hex, unhex};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::sessions;
use crate::sql_types::Sql;

#[derive(Insertable, Queryable, Selectable)]
#[diesel(table_name = sessions)]
struct SessionRow {
    hash: String,
    org_id: Sql<OrgId>,
    token_hash: String,
    created_at: Sql<Timestamp>,
    seen_at: Sql<Timestamp>,
}

/// The key of a session's row.
fn key(hash: SessionHash) -> String {
    hex(TokenHash(hash.0))
}

impl SessionRow {
    fn of(session: &Session) -> Self {
        Self {
            hash: key(session.hash),
            org_id: Sql(session.org),
            token_hash: hex(session.token),
            created_at: Sql(session.created_at),
            seen_at: Sql(session.seen_at),
        }
    }

    fn into_session(self) -> Result<Session, DbError> {
        Ok(Session {
            hash: SessionHash(unhex(&self.hash)?.0),
            org: self.org_id.0,
            token: unhex(&self.token_hash)?,
            created_at: self.created_at.0,
            seen_at: self.seen_at.0,
        })
    }
}

#[async_trait]
impl SessionStore for Store {
    async fn begin(&self, session: &Session) -> Result<(), StoreError> {
        let row = SessionRow::of(session);
        let job = self.write(
            session.org,
            Box::new(move |conn| {
                async move {
                    diesel::insert_into(sessions::table).values(&row).execute(conn).await?;
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn session(&self, hash: SessionHash) -> Result<Option<Session>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let row: Option<SessionRow> = sessions::table
            .find(key(hash))
            .select(SessionRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(SessionRow::into_session).transpose()?)
    }

    async fn note_use(&self, hash: SessionHash, at: Timestamp) -> Result<(), StoreError> {
        let (key, at) = (key(hash), at);
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let noted = sessions::table.find(key).filter(sessions::seen_at.lt(Sql(at)));
                    diesel::update(noted).set(sessions::seen_at.eq(Sql(at))).execute(conn).await?;
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn end(&self, hash: SessionHash) -> Result<bool, StoreError> {
        let key = key(hash);
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let gone = diesel::delete(sessions::table.find(key)).execute(conn).await?;
                    Ok(gone > 0)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn prune(&self, seen: Timestamp, created: Timestamp) -> Result<u64, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old =
                        sessions::seen_at.lt(Sql(seen)).or(sessions::created_at.lt(Sql(created)));
                    let gone = diesel::delete(sessions::table.filter(old)).execute(conn).await?;
                    Ok(u64::try_from(gone).unwrap_or(u64::MAX))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }
}
