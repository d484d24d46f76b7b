//! What hosts were last shown of pull requests, and what is to be shown next.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, PrNumber, QueueId, Sha};
use signalbox_domain::ports::{
    AnnouncementStore, LeasedAnnouncement, QueueRef, SHOWN_AFTER, Shown, StoreError,
};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::super::locked;
use super::{Conn, Store};
use crate::documents::{number, uuid};
use crate::error::DbError;
use crate::schema::announcements;

const WHAT: &str = "announcement";

#[derive(Queryable, Selectable)]
#[diesel(table_name = announcements)]
struct AnnouncementRow {
    queue_id: String,
    pr_number: i64,
    org_id: String,
    status: Option<String>,
    comment: Option<String>,
    labels: Option<String>,
    closed: Option<String>,
    newer_head: Option<String>,
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
    shown_at: i64,
    due_at: Option<i64>,
    holder: Option<String>,
    held_until: i64,
}

impl AnnouncementRow {
    fn into_shown(self) -> Result<(QueueRef, PrNumber, Shown), DbError> {
        let print = |text: Option<String>| text.map(|it| uuid(WHAT, &it)).transpose();
        let newer_head = self.newer_head.map(Sha::new).transpose();
        let shown = Shown {
            status: print(self.status)?,
            comment: print(self.comment)?,
            labels: print(self.labels)?,
            closed: print(self.closed)?,
            newer_head: newer_head.map_err(|error| DbError::corrupt(WHAT, error))?,
        };
        let queue = QueueRef {
            org: OrgId(uuid(WHAT, &self.org_id)?),
            id: QueueId(uuid(WHAT, &self.queue_id)?),
        };
        Ok((queue, PrNumber(number(WHAT, self.pr_number)?), shown))
    }
}

impl ShownChange {
    fn of(shown: &Shown, now: Timestamp, due_at: Option<i64>) -> Self {
        let text = |print: Option<Uuid>| print.map(|it| it.to_string());
        Self {
            status: text(shown.status),
            comment: text(shown.comment),
            labels: text(shown.labels),
            closed: text(shown.closed),
            newer_head: shown.newer_head.as_ref().map(|it| it.as_str().to_owned()),
            shown_at: now.unix_micros(),
            due_at,
            holder: None,
            held_until: 0,
        }
    }
}

/// Makes pull requests due, in the transaction of the commit that names them. One that is due
/// earlier stays so.
pub(super) async fn make_due(
    conn: &mut Conn,
    queue: QueueRef,
    prs: &[i64],
    at: Timestamp,
) -> Result<(), DbError> {
    let (id, org) = (queue.id.to_string(), queue.org.to_string());
    let due = at.plus(SHOWN_AFTER).unix_micros();
    for pr in prs {
        let known = announcements::table.find((&id, *pr));
        let is_later = announcements::due_at.is_null().or(announcements::due_at.gt(due));
        diesel::insert_into(announcements::table)
            .values((
                announcements::queue_id.eq(&id),
                announcements::pr_number.eq(*pr),
                announcements::org_id.eq(&org),
                announcements::shown_at.eq(at.unix_micros()),
                announcements::held_until.eq(0),
                announcements::due_at.eq(i64::MAX),
            ))
            .on_conflict_do_nothing()
            .execute(conn)
            .await?;
        diesel::update(known)
            .filter(is_later.assume_not_null())
            .set(announcements::due_at.eq(due))
            .execute(conn)
            .await?;
    }
    Ok(())
}

/// Pull requests that may be leased.
macro_rules! free {
    ($at:expr) => {
        announcements::table
            .filter(announcements::due_at.le($at))
            .filter(announcements::held_until.le($at))
    };
}

#[async_trait]
impl AnnouncementStore for Store {
    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedAnnouncement>, StoreError> {
        let mut conn = self.connection().await?;
        let any: Option<i64> = free!(now.unix_micros())
            .select(announcements::pr_number)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        drop(conn);
        if any.is_none() {
            // The usual case needs no turn to write.
            return Ok(Vec::new());
        }
        let job =
            self.write(Box::new(move |conn| lease_rows(conn, limit, holder, now, until).boxed()));
        Ok(job.await?)
    }

    async fn release(
        &self,
        leased: &LeasedAnnouncement,
        now: Timestamp,
        next: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let leased = leased.clone();
        let job = Store::write(
            self,
            Box::new(move |conn| {
                async move {
                    let (id, pr) = (leased.queue.id.to_string(), i64::from(leased.pr.0));
                    let row = || {
                        announcements::table
                            .find((&id, pr))
                            .filter(announcements::holder.eq(leased.lease.to_string()))
                    };
                    // Written first: a commit that names the row waits for the end of this.
                    let held = diesel::update(row())
                        .set(announcements::shown_at.eq(now.unix_micros()))
                        .execute(conn)
                        .await?;
                    if held == 0 {
                        return Ok(false);
                    }
                    let times: Option<(Option<i64>, i64)> = row()
                        .select((announcements::due_at, announcements::held_until))
                        .first(conn)
                        .await
                        .optional()?;
                    let Some((due, until)) = times else { return Ok(false) };
                    // A commit during the lease has made it due earlier than the lease's end.
                    let named = due.filter(|due| *due < until);
                    let next = named.or(next.map(Timestamp::unix_micros));
                    let change = ShownChange::of(&leased.shown, now, next);
                    Ok(diesel::update(row()).set(&change).execute(conn).await? == 1)
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

async fn lease_rows(
    conn: &mut Conn,
    limit: u32,
    holder: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<LeasedAnnouncement>, DbError> {
    let at = now.unix_micros();
    let rows: Vec<AnnouncementRow> = locked!(
        free!(at)
            .order((announcements::due_at, announcements::queue_id, announcements::pr_number))
            .limit(i64::from(limit))
            .select(AnnouncementRow::as_select())
    )
    .load(conn)
    .await?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        // One lease each time: a lost one is told from its successor, also by one holder.
        let name = format!("{}:{}:{at}", row.queue_id, row.pr_number);
        let lease = Uuid::new_v5(&holder, name.as_bytes());
        diesel::update(announcements::table.find((&row.queue_id, row.pr_number)))
            .set((
                announcements::holder.eq(lease.to_string()),
                announcements::held_until.eq(until.unix_micros()),
                announcements::due_at.eq(until.unix_micros()),
            ))
            .execute(conn)
            .await?;
        let (queue, pr, shown) = row.into_shown()?;
        leased.push(LeasedAnnouncement { queue, pr, lease, shown });
    }
    Ok(leased)
}
