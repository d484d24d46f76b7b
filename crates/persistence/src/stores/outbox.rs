//! The store of the outbox.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, QueueId, RunId};
use signalbox_domain::ports::{
    Backlog, Failing, FailingEffect, LeaseToken, Leased, Outbox, QueueRef, StoreError,
};
use signalbox_domain::queue::{Effect, EffectClass};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::super::locked;
use super::{Conn, Store};
use crate::documents::{EffectDocument, Kept, number};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::outbox;
use crate::sql_types::Sql;

/// Position, organization, queue, number, attempts, failing since, effect, request.
type Row = (i64, OrgId, QueueId, i64, i32, Option<Timestamp>, Kept<EffectDocument>, Option<String>);

/// Organization, queue, number, attempts, failing since, error, effect.
type FailingRow =
    (OrgId, QueueId, i64, i32, Option<Timestamp>, Option<String>, Kept<EffectDocument>);

#[async_trait]
impl Outbox for Store {
    async fn lease(
        &self,
        class: EffectClass,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Leased>, StoreError> {
        if self.backlog(class, now).await?.due == 0 {
            // The usual case needs no write transaction.
            return Ok(Vec::new());
        }
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| lease_rows(conn, class, limit, holder, now, until).boxed()),
        );
        Ok(job.await?)
    }

    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let renewed = diesel::update(outbox::table)
                        .filter(outbox::position.eq(token.row))
                        .filter(outbox::lease.eq(Sql(token.lease)))
                        .set(outbox::leased_until.eq(Sql(until)))
                        .execute(conn)
                        .await?;
                    Ok(renewed == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn finish(&self, token: LeaseToken) -> Result<bool, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let held = outbox::table
                        .filter(outbox::position.eq(token.row))
                        .filter(outbox::lease.eq(Sql(token.lease)));
                    Ok(diesel::delete(held).execute(conn).await? == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError> {
        let error: String = error.chars().take(1_024).filter(|it| *it != '\0').collect();
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let given_back = diesel::update(outbox::table)
                        .filter(outbox::position.eq(token.row))
                        .filter(outbox::lease.eq(Sql(token.lease)))
                        .set((
                            outbox::lease.eq(None::<Uuid>),
                            outbox::holder.eq(None::<Uuid>),
                            outbox::leased_until.eq(None::<Timestamp>),
                            outbox::due_at.eq(Sql(at)),
                            outbox::failing_since.eq(Sql(failing_since)),
                            outbox::last_error.eq(error),
                        ))
                        .execute(conn)
                        .await?;
                    Ok(given_back == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn revoke_checks(&self, queue: QueueRef, run: RunId) -> Result<u64, StoreError> {
        let job = self.write(
            queue,
            Box::new(move |conn| {
                async move {
                    let rows = outbox::table
                        .filter(outbox::queue_id.eq(Sql(queue.id)))
                        .filter(outbox::org_id.eq(Sql(queue.org)))
                        .filter(outbox::run_id.eq(Sql(run)))
                        .filter(outbox::lane.eq(EffectClass::Checks.as_str()));
                    let removed = diesel::delete(rows).execute(conn).await?;
                    Ok(u64::try_from(removed).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn answering(&self, queue: QueueRef) -> Result<Vec<RunId>, StoreError> {
        let mut conn = self.connection(queue).await?;
        let rows: Vec<Kept<EffectDocument>> = outbox::table
            .filter(outbox::queue_id.eq(Sql(queue.id)))
            .filter(outbox::org_id.eq(Sql(queue.org)))
            .filter(outbox::lane.eq(EffectClass::Host.as_str()))
            .filter(outbox::run_id.is_not_null())
            .select(outbox::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let mut runs = Vec::new();
        for Kept(EffectDocument { effect }) in rows {
            if let Effect::BuildCandidate(_) | Effect::Land(_) = effect {
                runs.extend(effect.run());
            }
        }
        Ok(runs)
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let leased = diesel::update(outbox::table).filter(outbox::holder.is_not_null());
                    let mut leased = leased.into_boxed();
                    if let Some(holder) = holder {
                        leased = leased.filter(outbox::holder.eq(Sql(holder)));
                    }
                    let given_back = leased
                        .set((
                            outbox::lease.eq(None::<Uuid>),
                            outbox::holder.eq(None::<Uuid>),
                            outbox::leased_until.eq(None::<Timestamp>),
                        ))
                        .execute(conn)
                        .await?;
                    Ok(u64::try_from(given_back).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn failing(
        &self,
        queue: Option<QueueRef>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Failing, StoreError> {
        let mut conn = self.connection(queue.map(|it| it.org)).await?;
        let failing = || {
            let rows = outbox::table.filter(outbox::failing_since.le(Sql(before)));
            let mut rows = rows.into_boxed();
            if let Some(queue) = queue {
                rows = rows
                    .filter(outbox::queue_id.eq(Sql(queue.id)))
                    .filter(outbox::org_id.eq(Sql(queue.org)));
            }
            rows
        };
        let count: i64 = failing().count().get_result(&mut conn).await.map_err(DbError::from)?;
        let count = number("outbox", count)?;
        if count == 0 {
            return Ok(Failing::default());
        }
        let rows: Vec<FailingRow> = failing()
            .order((outbox::failing_since, outbox::position))
            .limit(i64::from(limit))
            .select((
                outbox::org_id,
                outbox::queue_id,
                outbox::number,
                outbox::attempts,
                outbox::failing_since,
                outbox::last_error,
                outbox::document,
            ))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let longest = rows.into_iter().map(failing_effect).collect::<Result<_, DbError>>()?;
        Ok(Failing { count, longest })
    }

    async fn backlog(&self, class: EffectClass, now: Timestamp) -> Result<Backlog, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let (due, oldest): (i64, Option<Timestamp>) = outbox::table
            .filter(outbox::lane.eq(class.as_str()))
            .filter(outbox::due_at.le(Sql(now)))
            .filter(outbox::leased_until.is_null().or(outbox::leased_until.le(Sql(now))))
            .select((diesel::dsl::count_star(), diesel::dsl::min(outbox::due_at)))
            .first(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(Backlog { due: number("outbox", due)?, oldest })
    }
}

fn failing_effect(row: FailingRow) -> Result<FailingEffect, DbError> {
    let (org, id, sequence, attempts, since, error, Kept(EffectDocument { effect })) = row;
    Ok(FailingEffect {
        queue: QueueRef { org, id },
        number: number("outbox", sequence)?,
        effect,
        since: since.ok_or_else(|| DbError::corrupt("outbox", "an effect without a failure"))?,
        attempts: number("outbox", i64::from(attempts))?,
        error: error.unwrap_or_default(),
    })
}

async fn lease_rows(
    conn: &mut Conn,
    class: EffectClass,
    limit: u32,
    holder: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Leased>, DbError> {
    let rows: Vec<Row> = locked!(
        outbox::table
            .filter(outbox::lane.eq(class.as_str()))
            .filter(outbox::due_at.le(Sql(now)))
            .filter(outbox::leased_until.is_null().or(outbox::leased_until.le(Sql(now))))
            .order((outbox::due_at, outbox::position))
            .limit(i64::from(limit))
            .select((
                outbox::position,
                outbox::org_id,
                outbox::queue_id,
                outbox::number,
                outbox::attempts,
                outbox::failing_since,
                outbox::document,
                outbox::request_id,
            ))
    )
    .load(conn)
    .await?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        let (position, org, id, sequence, attempts, failing_since, document, request) = row;
        // A new lease id each time, so that a lost lease differs from its successor, even of the
        // same holder.
        let name = format!("{position}:{attempts}:{}", now.unix_micros());
        let lease = Uuid::new_v5(&holder, name.as_bytes());
        diesel::update(outbox::table)
            .filter(outbox::position.eq(position))
            .set((
                outbox::lease.eq(Sql(lease)),
                outbox::holder.eq(Sql(holder)),
                outbox::leased_until.eq(Sql(until)),
                outbox::attempts.eq(attempts + 1),
            ))
            .execute(conn)
            .await?;
        leased.push(Leased {
            token: LeaseToken { row: position, lease },
            queue: QueueRef { org, id },
            number: number("outbox", sequence)?,
            effect: document.0.effect,
            attempts: number("outbox", i64::from(attempts))?,
            failing_since,
            request,
        });
    }
    Ok(leased)
}
