//! The store of periodic jobs.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ports::{JOB_GRACE, JobLease, JobStore, LeasedJob, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::super::locked;
use super::{Conn, Store};
use crate::documents::number;
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::jobs;
use crate::sql_types::Sql;

#[async_trait]
impl JobStore for Store {
    async fn declare(&self, kinds: &[(&str, Timestamp)], now: Timestamp) -> Result<(), StoreError> {
        let latest = kinds.iter().map(|(kind, at)| ((*kind).to_owned(), *at));
        let latest: Vec<(String, Timestamp)> = latest.collect();
        let job = Store::write(
            self,
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    for (kind, latest) in &latest {
                        diesel::insert_into(jobs::table)
                            .values((
                                jobs::kind.eq(kind),
                                jobs::due_at.eq(Sql(now)),
                                jobs::failures.eq(0),
                            ))
                            .on_conflict_do_nothing()
                            .execute(conn)
                            .await?;
                        diesel::update(jobs::table.find(kind))
                            .filter(jobs::due_at.gt(Sql(latest)))
                            .set(jobs::due_at.eq(Sql(latest)))
                            .execute(conn)
                            .await?;
                    }
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn lease(
        &self,
        kinds: &[&str],
        server: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedJob>, StoreError> {
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| lease_rows(conn, kinds, server, now, until).boxed()),
        );
        Ok(job.await?)
    }

    async fn renew(&self, token: &JobLease, until: Timestamp) -> Result<bool, StoreError> {
        let token = token.clone();
        let job = Store::write(
            self,
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let renewed = diesel::update(jobs::table.find(&token.kind))
                        .filter(jobs::lease.eq(Sql(token.lease)))
                        .set(jobs::leased_until.eq(Sql(until)))
                        .execute(conn)
                        .await?;
                    Ok(renewed == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn finish(
        &self,
        token: &JobLease,
        now: Timestamp,
        due_at: Timestamp,
        error: Option<&str>,
    ) -> Result<bool, StoreError> {
        let token = token.clone();
        let error: Option<String> = error.map(|error| error.chars().take(1_024).collect());
        let job = Store::write(
            self,
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let row =
                        || jobs::table.find(&token.kind).filter(jobs::lease.eq(Sql(token.lease)));
                    let failed: i32 = error.is_some().into();
                    let finished = diesel::update(row())
                        .set((
                            jobs::due_at.eq(Sql(due_at)),
                            jobs::lease.eq(None::<Uuid>),
                            jobs::leased_until.eq(None::<Timestamp>),
                            // Consecutive failures: a success resets the count.
                            jobs::failures.eq(jobs::failures * failed + failed),
                            jobs::last_run.eq(Sql(now)),
                            jobs::last_error.eq(error),
                        ))
                        .execute(conn)
                        .await?;
                    Ok(finished == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn hand_back(&self, server: Option<Uuid>) -> Result<u64, StoreError> {
        let job = Store::write(
            self,
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let held = diesel::update(jobs::table).filter(jobs::server.is_not_null());
                    let mut held = held.into_boxed();
                    if let Some(server) = server {
                        held = held.filter(jobs::server.eq(Sql(server)));
                    }
                    let freed = held
                        .set((
                            jobs::server.eq(None::<Uuid>),
                            jobs::lease.eq(None::<Uuid>),
                            jobs::leased_until.eq(None::<Timestamp>),
                        ))
                        .execute(conn)
                        .await?;
                    Ok(u64::try_from(freed).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }
}

async fn lease_rows(
    conn: &mut Conn,
    kinds: Vec<String>,
    server: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<LeasedJob>, DbError> {
    let overdue = now.minus(JOB_GRACE);
    let own = jobs::server.is_null().or(jobs::server.eq(Sql(server)));
    let rows: Vec<(String, i32)> = locked!(
        jobs::table
            .filter(jobs::kind.eq_any(kinds))
            .filter(jobs::due_at.le(Sql(now)))
            .filter(jobs::leased_until.is_null().or(jobs::leased_until.le(Sql(now))))
            .filter(own.assume_not_null().or(jobs::due_at.le(Sql(overdue))))
            .order((jobs::due_at, jobs::kind))
            .select((jobs::kind, jobs::failures))
    )
    .load(conn)
    .await?;
    let mut leased = Vec::with_capacity(rows.len());
    for (kind, failures) in rows {
        let lease = Uuid::new_v5(&server, format!("{kind}:{}", now.unix_micros()).as_bytes());
        diesel::update(jobs::table.find(&kind))
            .set((
                jobs::server.eq(Sql(server)),
                jobs::lease.eq(Sql(lease)),
                jobs::leased_until.eq(Sql(until)),
            ))
            .execute(conn)
            .await?;
        let failures = number("job", i64::from(failures))?;
        leased.push(LeasedJob { token: JobLease { kind, lease }, failures });
    }
    Ok(leased)
}
