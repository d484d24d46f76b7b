//! The store of check output.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, RunId};
use signalbox_domain::ports::{CheckLog, CheckOutput, MAX_CHECK_OUTPUT, StoreError};
use signalbox_domain::time::Timestamp;

use super::Store;
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::check_outputs;
use crate::sql_types::Sql;

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = check_outputs)]
struct Row {
    org_id: Sql<OrgId>,
    run_id: Sql<RunId>,
    name: String,
    at: Sql<Timestamp>,
    output: String,
}

impl Row {
    fn of(output: &CheckOutput) -> Self {
        Self {
            org_id: Sql(output.org),
            run_id: Sql(output.run),
            name: output.check.clone(),
            at: Sql(output.at),
            output: storable(&output.text),
        }
    }
}

/// The text without NUL bytes, which PostgreSQL does not store, truncated to the limit.
fn storable(text: &str) -> String {
    let mut text = text.replace('\0', "\u{fffd}");
    if text.len() > MAX_CHECK_OUTPUT {
        let mut end = MAX_CHECK_OUTPUT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

#[async_trait]
impl CheckLog for Store {
    async fn write(&self, output: &CheckOutput) -> Result<(), StoreError> {
        let row = Row::of(output);
        let job = Store::write(
            self,
            output.org,
            Box::new(move |conn| {
                async move {
                    let key = (check_outputs::org_id, check_outputs::run_id, check_outputs::name);
                    diesel::insert_into(check_outputs::table)
                        .values(&row)
                        .on_conflict(key)
                        .do_update()
                        .set(&row)
                        .execute(conn)
                        .await?;
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn replace(&self, output: &CheckOutput, written: Timestamp) -> Result<bool, StoreError> {
        let row = Row::of(output);
        let job = Store::write(
            self,
            output.org,
            Box::new(move |conn| {
                async move {
                    let key = (&row.org_id, &row.run_id, &row.name);
                    let known = check_outputs::table.find(key);
                    let replaced = diesel::update(known.filter(check_outputs::at.eq(Sql(written))))
                        .set(&row)
                        .execute(conn)
                        .await?;
                    Ok(replaced == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn read(
        &self,
        org: OrgId,
        run: RunId,
        check: &str,
    ) -> Result<Option<CheckOutput>, StoreError> {
        let mut conn = self.connection(org).await?;
        let row: Option<(Timestamp, String)> = check_outputs::table
            .find((Sql(org), Sql(run), check))
            .select((check_outputs::at, check_outputs::output))
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|(at, text)| CheckOutput { org, run, check: check.to_owned(), text, at }))
    }

    async fn written(&self, org: OrgId, run: RunId) -> Result<Option<Timestamp>, StoreError> {
        let mut conn = self.connection(org).await?;
        let at: Option<Timestamp> = check_outputs::table
            .filter(check_outputs::org_id.eq(Sql(org)).and(check_outputs::run_id.eq(Sql(run))))
            .order(check_outputs::at.desc())
            .select(check_outputs::at)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(at)
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = Store::write(
            self,
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old: Vec<(OrgId, RunId, String)> = check_outputs::table
                        .filter(check_outputs::at.lt(Sql(before)))
                        .order(check_outputs::at)
                        .limit(i64::from(limit))
                        .select((check_outputs::org_id, check_outputs::run_id, check_outputs::name))
                        .load(conn)
                        .await?;
                    for key in &old {
                        let row = check_outputs::table.find((Sql(key.0), Sql(key.1), &key.2));
                        diesel::delete(row).execute(conn).await?;
                    }
                    Ok(u64::try_from(old.len()).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }
}
