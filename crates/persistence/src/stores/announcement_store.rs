//! The store of announcements.

use std::collections::BTreeMap;

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
use super::bulk::{Target, bulk_rows};
use super::{Conn, Store};
use crate::documents::number;
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::announcements;
use crate::sql_types::Sql;
use crate::statement::Statement;

const WHAT: &str = "announcement";
/// The lease end of a row without a lease.
const NEVER_HELD: Timestamp = Timestamp::from_unix_micros(0);

#[derive(Queryable, Selectable)]
#[diesel(table_name = announcements)]
struct AnnouncementRow {
    queue_id: QueueId,
    pr_number: i64,
    org_id: OrgId,
    status: Option<Uuid>,
    comment: Option<Uuid>,
    labels: Option<Uuid>,
    closed: Option<Uuid>,
    newer_head: Option<String>,
}

/// The columns that are written after an announcement.
#[derive(AsChangeset)]
#[diesel(table_name = announcements, treat_none_as_null = true)]
struct ShownChange {
    status: Option<Sql<Uuid>>,
    comment: Option<Sql<Uuid>>,
    labels: Option<Sql<Uuid>>,
    closed: Option<Sql<Uuid>>,
    newer_head: Option<String>,
    shown_at: Sql<Timestamp>,
    due_at: Option<Sql<Timestamp>>,
    holder: Option<Sql<Uuid>>,
    held_until: Sql<Timestamp>,
}

impl AnnouncementRow {
    fn into_shown(self) -> Result<(QueueRef, PrNumber, Shown), DbError> {
        let newer_head = self.newer_head.map(Sha::new).transpose();
        let shown = Shown {
            status: self.status,
            comment: self.comment,
            labels: self.labels,
            closed: self.closed,
            newer_head: newer_head.map_err(|error| DbError::corrupt(WHAT, error))?,
        };
        let queue = QueueRef { org: self.org_id, id: self.queue_id };
        Ok((queue, PrNumber(number(WHAT, self.pr_number)?), shown))
    }
}

impl ShownChange {
    fn of(shown: &Shown, now: Timestamp, due_at: Option<Timestamp>) -> Self {
        Self {
            status: shown.status.map(Sql),
            comment: shown.comment.map(Sql),
            labels: shown.labels.map(Sql),
            closed: shown.closed.map(Sql),
            newer_head: shown.newer_head.as_ref().map(|it| it.as_str().to_owned()),
            shown_at: Sql(now),
            due_at: due_at.map(Sql),
            holder: None,
            held_until: Sql(NEVER_HELD),
        }
    }
}

bulk_rows! {
    /// A pull request that becomes due. An earlier due time is kept.
    DUE = DueRow in "announcements" {
        queue_id: QueueId, pr_number: i64, org_id: OrgId, shown_at: Timestamp,
        held_until: Timestamp, due_at: Timestamp,
    } "ON CONFLICT (queue_id, pr_number) DO UPDATE SET due_at = excluded.due_at \
        WHERE announcements.due_at IS NULL OR announcements.due_at > excluded.due_at";
}

/// The statements that make pull requests due, in the transaction of the commit that names them.
pub(super) fn make_due(
    queue: QueueRef,
    prs: &BTreeMap<PrNumber, Timestamp>,
) -> Result<Vec<Statement>, DbError> {
    let due = |(pr, at): (&PrNumber, &Timestamp)| DueRow {
        queue_id: queue.id,
        pr_number: i64::from(pr.0),
        org_id: queue.org,
        shown_at: *at,
        held_until: NEVER_HELD,
        due_at: at.plus(SHOWN_AFTER),
    };
    let rows: Vec<DueRow> = prs.iter().map(due).collect();
    DUE.inserts(&rows)
}

/// Pull requests that may be leased.
macro_rules! free {
    ($at:expr) => {
        announcements::table
            .filter(announcements::due_at.le(Sql($at)))
            .filter(announcements::held_until.le(Sql($at)))
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
        let mut conn = self.connection(Reach::ALL).await?;
        let any: Option<i64> = free!(now)
            .select(announcements::pr_number)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        drop(conn);
        if any.is_none() {
            // The usual case needs no write transaction.
            return Ok(Vec::new());
        }
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| lease_rows(conn, limit, holder, now, until).boxed()),
        );
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
            leased.queue,
            Box::new(move |conn| {
                async move {
                    let (id, pr) = (leased.queue.id, i64::from(leased.pr.0));
                    let row = || {
                        announcements::table
                            .find((Sql(id), pr))
                            .filter(announcements::holder.eq(Sql(leased.lease)))
                    };
                    // Update first: a commit that names the row waits for the end of this
                    // transaction.
                    let held = diesel::update(row())
                        .set(announcements::shown_at.eq(Sql(now)))
                        .execute(conn)
                        .await?;
                    if held == 0 {
                        return Ok(false);
                    }
                    let times: Option<(Option<Timestamp>, Timestamp)> = row()
                        .select((announcements::due_at, announcements::held_until))
                        .first(conn)
                        .await
                        .optional()?;
                    let Some((due, until)) = times else { return Ok(false) };
                    // A commit during the lease has set a due time before the lease's end.
                    let named = due.filter(|due| *due < until);
                    let next = named.or(next);
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
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old: Vec<(QueueId, i64)> = announcements::table
                        .filter(announcements::shown_at.lt(Sql(before)))
                        .order(announcements::shown_at)
                        .limit(i64::from(limit))
                        .select((announcements::queue_id, announcements::pr_number))
                        .load(conn)
                        .await?;
                    for (queue, pr) in &old {
                        diesel::delete(announcements::table.find((Sql(queue), pr)))
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
    let rows: Vec<AnnouncementRow> = locked!(
        free!(now)
            .order((announcements::due_at, announcements::queue_id, announcements::pr_number))
            .limit(i64::from(limit))
            .select(AnnouncementRow::as_select())
    )
    .load(conn)
    .await?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        // A new lease id each time, so that a lost lease differs from its successor, even of the
        // same holder.
        let name = format!("{}:{}:{}", row.queue_id, row.pr_number, now.unix_micros());
        let lease = Uuid::new_v5(&holder, name.as_bytes());
        diesel::update(announcements::table.find((Sql(row.queue_id), row.pr_number)))
            .set((
                announcements::holder.eq(Sql(lease)),
                announcements::held_until.eq(Sql(until)),
                announcements::due_at.eq(Sql(until)),
            ))
            .execute(conn)
            .await?;
        let (queue, pr, shown) = row.into_shown()?;
        leased.push(LeasedAnnouncement { queue, pr, lease, shown });
    }
    Ok(leased)
}
