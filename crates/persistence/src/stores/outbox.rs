//! Effects waiting to be run.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, QueueId, RunId};
use signalbox_domain::ports::{
    Backlog, Failing, FailingEffect, LeaseToken, Leased, Outbox, QueueRef, StoreError,
};
use signalbox_domain::queue::{Effect, Lane};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::super::locked;
use super::{Conn, Store};
use crate::documents::{decode, number, uuid};
use crate::error::DbError;
use crate::schema::outbox;

type Row = (i64, String, String, i64, i32, Option<i64>, i32, String, Option<String>);

type FailingRow = (String, String, i64, i32, Option<i64>, Option<String>, i32, String);

#[async_trait]
impl Outbox for Store {
    async fn lease(
        &self,
        lane: Lane,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Leased>, StoreError> {
        if self.backlog(lane, now).await?.due == 0 {
            // The usual case needs no turn to write.
            return Ok(Vec::new());
        }
        let job = self
            .write(Box::new(move |conn| lease_rows(conn, lane, limit, holder, now, until).boxed()));
        Ok(job.await?)
    }

    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError> {
        let job = self.write(Box::new(move |conn| {
            async move {
                let renewed = diesel::update(outbox::table)
                    .filter(outbox::position.eq(token.row))
                    .filter(outbox::lease.eq(token.lease.to_string()))
                    .set(outbox::leased_until.eq(until.unix_micros()))
                    .execute(conn)
                    .await?;
                Ok(renewed == 1)
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn finish(&self, token: LeaseToken) -> Result<bool, StoreError> {
        let job = self.write(Box::new(move |conn| {
            async move {
                let held = outbox::table
                    .filter(outbox::position.eq(token.row))
                    .filter(outbox::lease.eq(token.lease.to_string()));
                Ok(diesel::delete(held).execute(conn).await? == 1)
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError> {
        let error: String = error.chars().take(1_024).collect();
        let job = self.write(Box::new(move |conn| {
            async move {
                let given_back = diesel::update(outbox::table)
                    .filter(outbox::position.eq(token.row))
                    .filter(outbox::lease.eq(token.lease.to_string()))
                    .set((
                        outbox::lease.eq(None::<String>),
                        outbox::holder.eq(None::<String>),
                        outbox::leased_until.eq(None::<i64>),
                        outbox::due_at.eq(at.unix_micros()),
                        outbox::failing_since.eq(failing_since.unix_micros()),
                        outbox::last_error.eq(error),
                    ))
                    .execute(conn)
                    .await?;
                Ok(given_back == 1)
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn revoke_checks(&self, queue: QueueRef, run: RunId) -> Result<u64, StoreError> {
        let job = self.write(Box::new(move |conn| {
            async move {
                let rows = outbox::table
                    .filter(outbox::queue_id.eq(queue.id.to_string()))
                    .filter(outbox::org_id.eq(queue.org.to_string()))
                    .filter(outbox::run_id.eq(run.to_string()))
                    .filter(outbox::lane.eq(Lane::Checks.word()));
                let removed = diesel::delete(rows).execute(conn).await?;
                Ok(u64::try_from(removed).unwrap_or(0))
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn answering(&self, queue: QueueRef) -> Result<Vec<RunId>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<(i32, String)> = outbox::table
            .filter(outbox::queue_id.eq(queue.id.to_string()))
            .filter(outbox::org_id.eq(queue.org.to_string()))
            .filter(outbox::lane.eq(Lane::Host.word()))
            .filter(outbox::run_id.is_not_null())
            .select((outbox::format, outbox::document))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let mut runs = Vec::new();
        for (format, text) in rows {
            let effect: Effect = decode("effect", format, &text)?;
            if let Effect::BuildCandidate(_) | Effect::Land(_) = effect {
                runs.extend(effect.run());
            }
        }
        Ok(runs)
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let job = self.write(Box::new(move |conn| {
            async move {
                let leased = diesel::update(outbox::table).filter(outbox::holder.is_not_null());
                let mut leased = leased.into_boxed();
                if let Some(holder) = holder {
                    leased = leased.filter(outbox::holder.eq(holder.to_string()));
                }
                let given_back = leased
                    .set((
                        outbox::lease.eq(None::<String>),
                        outbox::holder.eq(None::<String>),
                        outbox::leased_until.eq(None::<i64>),
                    ))
                    .execute(conn)
                    .await?;
                Ok(u64::try_from(given_back).unwrap_or(0))
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn failing(
        &self,
        queue: Option<QueueRef>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Failing, StoreError> {
        let mut conn = self.connection().await?;
        let failing = || {
            let rows = outbox::table.filter(outbox::failing_since.le(before.unix_micros()));
            let mut rows = rows.into_boxed();
            if let Some(queue) = queue {
                rows = rows
                    .filter(outbox::queue_id.eq(queue.id.to_string()))
                    .filter(outbox::org_id.eq(queue.org.to_string()));
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
                outbox::format,
                outbox::document,
            ))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let longest = rows.into_iter().map(failing_effect).collect::<Result<_, DbError>>()?;
        Ok(Failing { count, longest })
    }

    async fn backlog(&self, lane: Lane, now: Timestamp) -> Result<Backlog, StoreError> {
        let mut conn = self.connection().await?;
        let now = now.unix_micros();
        let (due, oldest): (i64, Option<i64>) = outbox::table
            .filter(outbox::lane.eq(lane.word()))
            .filter(outbox::due_at.le(now))
            .filter(outbox::leased_until.is_null().or(outbox::leased_until.le(now)))
            .select((diesel::dsl::count_star(), diesel::dsl::min(outbox::due_at)))
            .first(&mut conn)
            .await
            .map_err(DbError::from)?;
        let oldest = oldest.map(Timestamp::from_unix_micros);
        Ok(Backlog { due: number("outbox", due)?, oldest })
    }
}

fn failing_effect(row: FailingRow) -> Result<FailingEffect, DbError> {
    let (org, queue, sequence, attempts, since, error, format, document) = row;
    Ok(FailingEffect {
        queue: QueueRef { org: OrgId(uuid("outbox", &org)?), id: QueueId(uuid("outbox", &queue)?) },
        number: number("outbox", sequence)?,
        effect: decode("effect", format, &document)?,
        since: Timestamp::from_unix_micros(since.unwrap_or_default()),
        attempts: number("outbox", i64::from(attempts))?,
        error: error.unwrap_or_default(),
    })
}

async fn lease_rows(
    conn: &mut Conn,
    lane: Lane,
    limit: u32,
    holder: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Leased>, DbError> {
    let at = now.unix_micros();
    let rows: Vec<Row> = locked!(
        outbox::table
            .filter(outbox::lane.eq(lane.word()))
            .filter(outbox::due_at.le(at))
            .filter(outbox::leased_until.is_null().or(outbox::leased_until.le(at)))
            .order((outbox::due_at, outbox::position))
            .limit(i64::from(limit))
            .select((
                outbox::position,
                outbox::org_id,
                outbox::queue_id,
                outbox::number,
                outbox::attempts,
                outbox::failing_since,
                outbox::format,
                outbox::document,
                outbox::request_id,
            ))
    )
    .load(conn)
    .await?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        let (position, org, queue, sequence, attempts, failing_since, format, text, request) = row;
        // One lease for each row: a lost one is told from its successor, also by one holder.
        let lease = Uuid::new_v5(&holder, format!("{position}:{attempts}:{at}").as_bytes());
        diesel::update(outbox::table)
            .filter(outbox::position.eq(position))
            .set((
                outbox::lease.eq(lease.to_string()),
                outbox::holder.eq(holder.to_string()),
                outbox::leased_until.eq(until.unix_micros()),
                outbox::attempts.eq(attempts + 1),
            ))
            .execute(conn)
            .await?;
        leased.push(Leased {
            token: LeaseToken { row: position, lease },
            queue: QueueRef {
                org: OrgId(uuid("outbox", &org)?),
                id: QueueId(uuid("outbox", &queue)?),
            },
            number: number("outbox", sequence)?,
            effect: decode("effect", format, &text)?,
            attempts: number("outbox", i64::from(attempts))?,
            failing_since: failing_since.map(Timestamp::from_unix_micros),
            request,
        });
    }
    Ok(leased)
}
