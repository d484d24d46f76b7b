//! Leases on uploads that wait to be read.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::UploadId;
use signalbox_domain::ids::RepoId;
use signalbox_domain::ports::{Backlog, LeaseToken, LeasedUpload};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{ContentHash, UploadRecord, UploadState};
use uuid::Uuid;

use super::super::locked;
use super::Conn;
use crate::documents::{Kept, encode, number};
use crate::error::DbError;
use crate::schema::{upload_jobs, uploads};
use crate::sql_types::Sql;

type Row = (i64, UploadId, i32, Option<Timestamp>);

/// What waits to be read.
pub(super) async fn backlog(conn: &mut Conn, now: Timestamp) -> Result<Backlog, DbError> {
    let (due, oldest): (i64, Option<Timestamp>) = upload_jobs::table
        .filter(upload_jobs::due_at.le(Sql(now)))
        .filter(upload_jobs::leased_until.is_null().or(upload_jobs::leased_until.le(Sql(now))))
        .select((diesel::dsl::count_star(), diesel::dsl::min(upload_jobs::due_at)))
        .first(conn)
        .await?;
    Ok(Backlog { due: number("upload job", due)?, oldest })
}

pub(super) async fn any_due(conn: &mut Conn, now: Timestamp) -> Result<bool, DbError> {
    let due: Option<i64> = upload_jobs::table
        .filter(upload_jobs::due_at.le(Sql(now)))
        .filter(upload_jobs::leased_until.is_null().or(upload_jobs::leased_until.le(Sql(now))))
        .select(upload_jobs::position)
        .first(conn)
        .await
        .optional()?;
    Ok(due.is_some())
}

pub(super) async fn lease(
    conn: &mut Conn,
    limit: u32,
    holder: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<LeasedUpload>, DbError> {
    let rows: Vec<Row> = locked!(
        upload_jobs::table
            .filter(upload_jobs::due_at.le(Sql(now)))
            .filter(upload_jobs::leased_until.is_null().or(upload_jobs::leased_until.le(Sql(now))))
            .order((upload_jobs::due_at, upload_jobs::position))
            .limit(i64::from(limit))
            .select((
                upload_jobs::position,
                upload_jobs::upload_id,
                upload_jobs::attempts,
                upload_jobs::failing_since,
            ))
    )
    .load(conn)
    .await?;
    let mut leased = Vec::with_capacity(rows.len());
    for (position, upload, attempts, failing_since) in rows {
        // One lease for each row: a lost one differs from its successor, even of the same holder.
        let name = format!("{position}:{attempts}:{}", now.unix_micros());
        let lease = Uuid::new_v5(&holder, name.as_bytes());
        diesel::update(upload_jobs::table.find(position))
            .set((
                upload_jobs::lease.eq(Sql(lease)),
                upload_jobs::holder.eq(Sql(holder)),
                upload_jobs::leased_until.eq(Sql(until)),
                upload_jobs::attempts.eq(attempts + 1),
            ))
            .execute(conn)
            .await?;
        let Kept(record) =
            uploads::table.find(Sql(upload)).select(uploads::document).first(conn).await?;
        leased.push(LeasedUpload {
            token: LeaseToken { row: position, lease },
            record,
            attempts: number("upload", i64::from(attempts))?,
            failing_since,
        });
    }
    Ok(leased)
}

pub(super) async fn renew(
    conn: &mut Conn,
    token: LeaseToken,
    until: Timestamp,
) -> Result<bool, DbError> {
    let held = upload_jobs::table.find(token.row).filter(upload_jobs::lease.eq(Sql(token.lease)));
    let renewed =
        diesel::update(held).set(upload_jobs::leased_until.eq(Sql(until))).execute(conn).await?;
    Ok(renewed == 1)
}

/// The upload of a lease that is held.
async fn held(conn: &mut Conn, token: LeaseToken) -> Result<Option<UploadId>, DbError> {
    let upload = upload_jobs::table
        .find(token.row)
        .filter(upload_jobs::lease.eq(Sql(token.lease)))
        .select(upload_jobs::upload_id)
        .first(conn)
        .await;
    Ok(upload.optional()?)
}

pub(super) async fn claim(
    conn: &mut Conn,
    token: LeaseToken,
    digest: ContentHash,
) -> Result<Option<UploadId>, DbError> {
    let Some(upload) = held(conn, token).await? else { return Ok(None) };
    let repo: RepoId =
        uploads::table.find(Sql(upload)).select(uploads::repo_id).first(&mut *conn).await?;
    let owner: Option<UploadId> = uploads::table
        .filter(uploads::repo_id.eq(Sql(repo)))
        .filter(uploads::digest.eq(digest.to_string()))
        .select(uploads::id)
        .first(conn)
        .await
        .optional()?;
    if owner.is_none() {
        diesel::update(uploads::table.find(Sql(upload)))
            .set(uploads::digest.eq(digest.to_string()))
            .execute(conn)
            .await?;
    }
    Ok(Some(owner.unwrap_or(upload)))
}

pub(super) async fn finish(
    conn: &mut Conn,
    token: LeaseToken,
    record: UploadRecord,
) -> Result<bool, DbError> {
    let job = upload_jobs::table
        .find(token.row)
        .filter(upload_jobs::lease.eq(Sql(token.lease)))
        .filter(upload_jobs::upload_id.eq(Sql(record.id)));
    if diesel::delete(job).execute(conn).await? == 0 {
        return Ok(false);
    }
    let row = uploads::table.find(Sql(record.id)).filter(uploads::org_id.eq(Sql(record.org)));
    diesel::update(row)
        .set((uploads::state.eq(record.state.as_str()), uploads::document.eq(encode(&record)?)))
        .execute(conn)
        .await?;
    if record.state == UploadState::Failed {
        diesel::update(uploads::table.find(Sql(record.id)))
            .set(uploads::digest.eq(None::<String>))
            .execute(conn)
            .await?;
    }
    Ok(true)
}

pub(super) async fn retry(
    conn: &mut Conn,
    token: LeaseToken,
    at: Timestamp,
    failing_since: Timestamp,
    error: String,
) -> Result<bool, DbError> {
    let held = upload_jobs::table.find(token.row).filter(upload_jobs::lease.eq(Sql(token.lease)));
    let given_back = diesel::update(held)
        .set((
            upload_jobs::lease.eq(None::<Uuid>),
            upload_jobs::holder.eq(None::<Uuid>),
            upload_jobs::leased_until.eq(None::<Timestamp>),
            upload_jobs::due_at.eq(Sql(at)),
            upload_jobs::failing_since.eq(Sql(failing_since)),
            upload_jobs::last_error.eq(error),
        ))
        .execute(conn)
        .await?;
    Ok(given_back == 1)
}

pub(super) async fn hand_back(conn: &mut Conn, holder: Option<Uuid>) -> Result<u64, DbError> {
    let leased = diesel::update(upload_jobs::table).filter(upload_jobs::holder.is_not_null());
    let mut leased = leased.into_boxed();
    if let Some(holder) = holder {
        leased = leased.filter(upload_jobs::holder.eq(Sql(holder)));
    }
    let given_back = leased
        .set((
            upload_jobs::lease.eq(None::<Uuid>),
            upload_jobs::holder.eq(None::<Uuid>),
            upload_jobs::leased_until.eq(None::<Timestamp>),
        ))
        .execute(conn)
        .await?;
    Ok(u64::try_from(given_back).unwrap_or(0))
}
