//! What hosts were last shown of pull requests.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{AnnouncementStore, QueueRef, Shown, StoreError};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::Store;
use crate::documents::{number, uuid};
use crate::error::DbError;
use crate::schema::announcements;

const WHAT: &str = "announcement";

#[derive(Queryable, Selectable)]
#[diesel(table_name = announcements)]
struct AnnouncementRow {
    pr_number: i64,
    status: Option<String>,
    comment: Option<String>,
    labels: Option<String>,
    closed: Option<String>,
    newer_head: Option<String>,
    settled: bool,
}

/// What is written of a pull request that was shown.
#[derive(AsChangeset)]
#[diesel(table_name = announcements, treat_none_as_null = true)]
struct ShownChange {
    status: Option<String>,
    comment: Option<String>,
    labels: Option<String>,
    closed: Option<String>,
    newer_head: Option<String>,
    settled: bool,
    shown_at: i64,
    holder: Option<String>,
    held_until: i64,
}

impl AnnouncementRow {
    fn into_shown(self) -> Result<(PrNumber, Shown), DbError> {
        let print = |text: Option<String>| text.map(|it| uuid(WHAT, &it)).transpose();
        let newer_head = self.newer_head.map(Sha::new).transpose();
        let shown = Shown {
            status: print(self.status)?,
            comment: print(self.comment)?,
            labels: print(self.labels)?,
            closed: print(self.closed)?,
            newer_head: newer_head.map_err(|error| DbError::corrupt(WHAT, error))?,
            settled: self.settled,
        };
        Ok((PrNumber(number(WHAT, self.pr_number)?), shown))
    }
}

impl ShownChange {
    fn of(shown: &Shown, now: Timestamp) -> Self {
        let text = |print: Option<Uuid>| print.map(|it| it.to_string());
        Self {
            status: text(shown.status),
            comment: text(shown.comment),
            labels: text(shown.labels),
            closed: text(shown.closed),
            newer_head: shown.newer_head.as_ref().map(|it| it.as_str().to_owned()),
            settled: shown.settled,
            shown_at: now.unix_micros(),
            holder: None,
            held_until: 0,
        }
    }
}

#[async_trait]
impl AnnouncementStore for Store {
    async fn unsettled_or_since(
        &self,
        queue: QueueRef,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(PrNumber, Shown)>, StoreError> {
        let mut conn = self.connection().await?;
        let recent = announcements::shown_at.ge(since.unix_micros());
        let rows: Vec<AnnouncementRow> = announcements::table
            .filter(announcements::queue_id.eq(queue.id.to_string()))
            .filter(announcements::org_id.eq(queue.org.to_string()))
            .filter(announcements::settled.eq(false).or(recent))
            .order((announcements::settled, announcements::shown_at, announcements::pr_number))
            .limit(i64::from(limit))
            .select(AnnouncementRow::as_select())
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let shown: Result<Vec<_>, DbError> =
            rows.into_iter().map(AnnouncementRow::into_shown).collect();
        Ok(shown?)
    }

    async fn claim(
        &self,
        queue: QueueRef,
        pr: PrNumber,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Shown>, StoreError> {
        let (id, org, holder) = (queue.id.to_string(), queue.org.to_string(), holder.to_string());
        let (now, until) = (now.unix_micros(), until.unix_micros());
        let job = Store::write(
            self,
            Box::new(move |conn| {
                async move {
                    diesel::insert_into(announcements::table)
                        .values((
                            announcements::queue_id.eq(&id),
                            announcements::pr_number.eq(i64::from(pr.0)),
                            announcements::org_id.eq(&org),
                            announcements::settled.eq(false),
                            announcements::shown_at.eq(now),
                            announcements::held_until.eq(0),
                        ))
                        .on_conflict_do_nothing()
                        .execute(conn)
                        .await?;
                    let row = announcements::table.find((&id, i64::from(pr.0)));
                    let free = announcements::held_until
                        .le(now)
                        .or(announcements::holder.is_null())
                        .or(announcements::holder.eq(&holder).assume_not_null());
                    let claimed = diesel::update(row)
                        .filter(free)
                        .set((
                            announcements::holder.eq(&holder),
                            announcements::held_until.eq(until),
                        ))
                        .execute(conn)
                        .await?;
                    if claimed == 0 {
                        return Ok(None);
                    }
                    let row: AnnouncementRow = announcements::table
                        .find((&id, i64::from(pr.0)))
                        .select(AnnouncementRow::as_select())
                        .first(conn)
                        .await?;
                    Ok(Some(row.into_shown()?.1))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn release(
        &self,
        queue: QueueRef,
        pr: PrNumber,
        holder: Uuid,
        shown: &Shown,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (id, holder) = (queue.id.to_string(), holder.to_string());
        let change = ShownChange::of(shown, now);
        let job = Store::write(
            self,
            Box::new(move |conn| {
                async move {
                    let row = announcements::table.find((&id, i64::from(pr.0)));
                    let written = diesel::update(row)
                        .filter(announcements::holder.eq(&holder))
                        .set(&change)
                        .execute(conn)
                        .await?;
                    Ok(written == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn forget(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = Store::write(
            self,
            Box::new(move |conn| {
                async move {
                    let old: Vec<(String, i64)> = announcements::table
                        .filter(announcements::shown_at.lt(before.unix_micros()))
                        .order(announcements::shown_at)
                        .limit(i64::from(limit))
                        .select((announcements::queue_id, announcements::pr_number))
                        .load(conn)
                        .await?;
                    for (queue, pr) in &old {
                        diesel::delete(announcements::table.find((queue, pr)))
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
