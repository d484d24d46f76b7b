//! The store of idempotency keys.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::TokenId;
use signalbox_domain::ports::{IdempotencyStore, KeptReply, KeyClaim, KeyedRequest, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::super::Conn;
use super::Store;
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::idempotency_keys as keys;
use crate::sql_types::Sql;

#[derive(Queryable, Selectable)]
#[diesel(table_name = keys)]
struct KeyRow {
    fingerprint: String,
    claim: Sql<Uuid>,
    until: Sql<Timestamp>,
    status: Option<i32>,
    content_type: Option<String>,
    body: Option<String>,
}

impl KeyRow {
    fn into_claim(self, request: &KeyedRequest) -> KeyClaim {
        if self.fingerprint != request.fingerprint {
            return KeyClaim::OtherRequest;
        }
        let status = self.status.and_then(|status| u16::try_from(status).ok());
        status.map_or(KeyClaim::Running, |status| {
            let content_type = self.content_type.unwrap_or_default();
            KeyClaim::Replied(KeptReply { status, content_type, body: self.body })
        })
    }
}

async fn insert(
    conn: &mut Conn,
    request: &KeyedRequest,
    until: Timestamp,
) -> Result<bool, DbError> {
    let row = (
        keys::org_id.eq(Sql(request.org)),
        keys::token_id.eq(Sql(request.token)),
        keys::key.eq(&request.key),
        keys::fingerprint.eq(&request.fingerprint),
        keys::claim.eq(Sql(request.claim)),
        keys::until.eq(Sql(until)),
    );
    let written =
        diesel::insert_into(keys::table).values(row).on_conflict_do_nothing().execute(conn).await?;
    Ok(written == 1)
}

#[async_trait]
impl IdempotencyStore for Store {
    async fn claim(
        &self,
        request: &KeyedRequest,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<KeyClaim, StoreError> {
        let request = request.clone();
        let job = Store::write(
            self,
            request.org,
            Box::new(move |conn| {
                async move {
                    if insert(conn, &request, until).await? {
                        return Ok(KeyClaim::Claimed);
                    }
                    let place = keys::table.find((Sql(request.token), &request.key));
                    let known: Option<KeyRow> =
                        place.select(KeyRow::as_select()).first(conn).await.optional()?;
                    // Another transaction has just taken or released it.
                    let Some(known) = known else { return Ok(KeyClaim::Running) };
                    if known.until.0 > now {
                        return Ok(known.into_claim(&request));
                    }
                    let expired = place.filter(keys::claim.eq(Sql(known.claim.0)));
                    diesel::delete(expired).execute(conn).await?;
                    let claimed = insert(conn, &request, until).await?;
                    Ok(if claimed { KeyClaim::Claimed } else { KeyClaim::Running })
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn keep(
        &self,
        request: &KeyedRequest,
        reply: &KeptReply,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let (request, reply) = (request.clone(), reply.clone());
        let job = Store::write(
            self,
            request.org,
            Box::new(move |conn| {
                async move {
                    let place = keys::table.find((Sql(request.token), request.key));
                    let claimed = place.filter(keys::claim.eq(Sql(request.claim)));
                    let kept = diesel::update(claimed)
                        .set((
                            keys::until.eq(Sql(until)),
                            keys::status.eq(Some(i32::from(reply.status))),
                            keys::content_type.eq(Some(reply.content_type)),
                            keys::body.eq(reply.body),
                        ))
                        .execute(conn)
                        .await?;
                    Ok(kept == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn release(&self, request: &KeyedRequest) -> Result<(), StoreError> {
        let request = request.clone();
        let job = Store::write(
            self,
            request.org,
            Box::new(move |conn| {
                async move {
                    let place = keys::table.find((Sql(request.token), request.key));
                    let claimed = place
                        .filter(keys::claim.eq(Sql(request.claim)))
                        .filter(keys::status.is_null());
                    diesel::delete(claimed).execute(conn).await?;
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = Store::write(
            self,
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old: Vec<(Sql<TokenId>, String)> = keys::table
                        .filter(keys::until.lt(Sql(before)))
                        .order(keys::until)
                        .limit(i64::from(limit))
                        .select((keys::token_id, keys::key))
                        .load(conn)
                        .await?;
                    for (token, key) in &old {
                        let row = keys::table.find((Sql(token.0), key));
                        diesel::delete(row.filter(keys::until.lt(Sql(before))))
                            .execute(conn)
                            .await?;
                    }
                    Ok(u64::try_from(old.len()).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }
}
