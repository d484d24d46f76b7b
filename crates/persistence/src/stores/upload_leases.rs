//! Leases on uploads that are to be read.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::UploadId;
use signalbox_domain::ports::{Backlog, LeaseToken, LeasedUpload};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{ContentHash, UploadRecord, UploadState};
use uuid::Uuid;

use super::super::locked;
use super::Conn;
use super::upload_store::{document, record};
use crate::documents::{FORMAT, number, uuid};
use crate::error::DbError;
use crate::schema::{upload_jobs, uploads};

type Row = (i64, String, i32, Option<i64>);

/// What waits to be read.
pub(super) async fn backlog(conn: &mut Conn, now: Timestamp) -> Result<Backlog, DbError> {
    let at = now.unix_micros();
    let (due, oldest): (i64, Option<i64>) = upload_jobs::table
        .filter(upload_jobs::due_at.le(at))
        .filter(upload_jobs::leased_until.is_null().or(upload_jobs::leased_until.le(at)))
        .select((diesel::dsl::count_star(), diesel::dsl::min(upload_jobs::due_at)))
        .first(conn)
        .await?;
    let oldest = oldest.map(Timestamp::from_unix_micros);
    Ok(Backlog { due: number("upload job", due)?, oldest })
}

pub(super) async fn any_due(conn: &mut Conn, now: Timestamp) -> Result<bool, DbError> {
    let at = now.unix_micros();
    let due: Option<i64> = upload_jobs::table
        .filter(upload_jobs::due_at.le(at))
        .filter(upload_jobs::leased_until.is_null().or(upload_jobs::leased_until.le(at)))
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
    let at = now.unix_micros();
    let rows: Vec<Row> = locked!(
        upload_jobs::table
            .filter(upload_jobs::due_at.le(at))
            .filter(upload_jobs::leased_until.is_null().or(upload_jobs::leased_until.le(at)))
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
        // One lease for each row: a lost one is told from its successor, also by one holder.
        let lease = Uuid::new_v5(&holder, format!("{position}:{attempts}:{at}").as_bytes());
        diesel::update(upload_jobs::table.find(position))
            .set((
                upload_jobs::lease.eq(lease.to_string()),
                upload_jobs::holder.eq(holder.to_string()),
                upload_jobs::leased_until.eq(until.unix_micros()),
                upload_jobs::attempts.eq(attempts + 1),
            ))
            .execute(conn)
            .await?;
        let (format, text): (i32, String) = uploads::table
            .find(upload)
            .select((uploads::format, uploads::document))
            .first(conn)
            .await?;
        leased.push(LeasedUpload {
            token: LeaseToken { row: position, lease },
            record: record(format, &text)?,
            attempts: number("upload", i64::from(attempts))?,
            failing_since: failing_since.map(Timestamp::from_unix_micros),
        });
    }
    Ok(leased)
}

pub(super) async fn renew(
    conn: &mut Conn,
    token: LeaseToken,
    until: Timestamp,
) -> Result<bool, DbError> {
    let held =
        upload_jobs::table.find(token.row).filter(upload_jobs::lease.eq(token.lease.to_string()));
    let renewed = diesel::update(held)
        .set(upload_jobs::leased_until.eq(until.unix_micros()))
        .execute(conn)
        .await?;
    Ok(renewed == 1)
}

/// The upload of a lease that is held.
async fn held(conn: &mut Conn, token: LeaseToken) -> Result<Option<String>, DbError> {
    let upload = upload_jobs::table
        .find(token.row)
        .filter(upload_jobs::lease.eq(token.lease.to_string()))
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
    let repo: String =
        uploads::table.find(&upload).select(uploads::repo_id).first(&mut *conn).await?;
    let owner: Option<String> = uploads::table
        .filter(uploads::repo_id.eq(&repo))
        .filter(uploads::digest.eq(digest.to_string()))
        .select(uploads::id)
        .first(conn)
        .await
        .optional()?;
    if owner.is_none() {
        diesel::update(uploads::table.find(&upload))
            .set(uploads::digest.eq(digest.to_string()))
            .execute(conn)
            .await?;
    }
    let owner = owner.unwrap_or(upload);
    Ok(Some(UploadId(uuid("upload", &owner)?)))
}

pub(super) async fn finish(
    conn: &mut Conn,
    token: LeaseToken,
    record: UploadRecord,
) -> Result<bool, DbError> {
    let job = upload_jobs::table
        .find(token.row)
        .filter(upload_jobs::lease.eq(token.lease.to_string()))
        .filter(upload_jobs::upload_id.eq(record.id.to_string()));
    if diesel::delete(job).execute(conn).await? == 0 {
        return Ok(false);
    }
    let row = uploads::table
        .find(record.id.to_string())
        .filter(uploads::org_id.eq(record.org.to_string()));
    diesel::update(row)
        .set((
            uploads::state.eq(record.state.word()),
            uploads::format.eq(FORMAT),
            uploads::document.eq(document(&record)?),
        ))
        .execute(conn)
        .await?;
    if record.state == UploadState::Failed {
        diesel::update(uploads::table.find(record.id.to_string()))
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
    let held =
        upload_jobs::table.find(token.row).filter(upload_jobs::lease.eq(token.lease.to_string()));
    let given_back = diesel::update(held)
        .set((
            upload_jobs::lease.eq(None::<String>),
            upload_jobs::holder.eq(None::<String>),
            upload_jobs::leased_until.eq(None::<i64>),
            upload_jobs::due_at.eq(at.unix_micros()),
            upload_jobs::failing_since.eq(failing_since.unix_micros()),
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
        leased = leased.filter(upload_jobs::holder.eq(holder.to_string()));
    }
    let given_back = leased
        .set((
            upload_jobs::lease.eq(None::<String>),
            upload_jobs::holder.eq(None::<String>),
            upload_jobs::leased_until.eq(None::<i64>),
        ))
        .execute(conn)
        .await?;
    Ok(u64::try_from(given_back).unwrap_or(0))
}
