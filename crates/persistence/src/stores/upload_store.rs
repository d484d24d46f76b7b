//! Uploads, and public ids of repositories.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::flaky::{Trust, UploadId};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{Backlog, LeaseToken, LeasedUpload, StoreError, UploadStore};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{ContentHash, Received, UploadRecord, UploadState};
use uuid::Uuid;

use super::upload_leases as leases;
use super::{Conn, Store};
use crate::documents::{Kept, encode, values};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::{public_repo_ids, upload_jobs, uploads};
use crate::sql_types::{Sql, each};

async fn receive(
    conn: &mut Conn,
    org: OrgId,
    id: UploadId,
    received: Received,
) -> Result<bool, DbError> {
    let row: Option<Kept<UploadRecord>> = uploads::table
        .find(Sql(id))
        .filter(uploads::org_id.eq(Sql(org)))
        .filter(uploads::state.eq(UploadState::Awaited.as_str()))
        .select(uploads::document)
        .first(conn)
        .await
        .optional()?;
    let Some(Kept(record)) = row else { return Ok(false) };
    let at = received.at;
    let kept = UploadRecord { state: UploadState::Received, received: Some(received), ..record };
    // Of two concurrent requests, one changes the row.
    let waiting =
        uploads::table.find(Sql(id)).filter(uploads::state.eq(UploadState::Awaited.as_str()));
    let changed = diesel::update(waiting)
        .set((uploads::state.eq(kept.state.as_str()), uploads::document.eq(encode(&kept)?)))
        .execute(conn)
        .await?;
    if changed == 0 {
        return Ok(false);
    }
    diesel::insert_into(upload_jobs::table)
        .values((
            upload_jobs::org_id.eq(Sql(org)),
            upload_jobs::upload_id.eq(Sql(id)),
            upload_jobs::due_at.eq(Sql(at)),
            upload_jobs::attempts.eq(0),
        ))
        .execute(conn)
        .await?;
    Ok(true)
}

#[async_trait]
impl UploadStore for Store {
    async fn create(
        &self,
        record: &UploadRecord,
        secret: Option<ContentHash>,
    ) -> Result<bool, StoreError> {
        let record = record.clone();
        let job = self.write(
            record.org,
            Box::new(move |conn| {
                async move {
                    let created = diesel::insert_into(uploads::table)
                        .values((
                            uploads::id.eq(Sql(record.id)),
                            uploads::org_id.eq(Sql(record.org)),
                            uploads::repo_id.eq(Sql(record.repo)),
                            uploads::trust.eq(record.trust.as_str()),
                            uploads::state.eq(record.state.as_str()),
                            uploads::secret.eq(secret.map(|it| it.to_string())),
                            uploads::created_at.eq(Sql(record.created_at)),
                            uploads::document.eq(encode(&record)?),
                        ))
                        .on_conflict(uploads::id)
                        .do_nothing()
                        .execute(conn)
                        .await?;
                    Ok(created == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn find(&self, org: OrgId, id: UploadId) -> Result<Option<UploadRecord>, StoreError> {
        let mut conn = self.connection(org).await?;
        let row: Option<Kept<UploadRecord>> = uploads::table
            .find(Sql(id))
            .filter(uploads::org_id.eq(Sql(org)))
            .select(uploads::document)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|Kept(record)| record))
    }

    async fn find_by_secret(
        &self,
        id: UploadId,
        secret: ContentHash,
    ) -> Result<Option<UploadRecord>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let row: Option<Kept<UploadRecord>> = uploads::table
            .find(Sql(id))
            .filter(uploads::secret.eq(secret.to_string()))
            .select(uploads::document)
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(|Kept(record)| record))
    }

    async fn receive(
        &self,
        org: OrgId,
        id: UploadId,
        received: &Received,
    ) -> Result<bool, StoreError> {
        let received = received.clone();
        let job = self.write(org, Box::new(move |conn| receive(conn, org, id, received).boxed()));
        Ok(job.await?)
    }

    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedUpload>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        if !leases::any_due(&mut conn, now).await? {
            // The usual case needs no turn to write.
            return Ok(Vec::new());
        }
        drop(conn);
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| leases::lease(conn, limit, holder, now, until).boxed()),
        );
        Ok(job.await?)
    }

    async fn backlog(&self, now: Timestamp) -> Result<Backlog, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        Ok(leases::backlog(&mut conn, now).await?)
    }

    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError> {
        let job =
            self.write(Reach::ALL, Box::new(move |conn| leases::renew(conn, token, until).boxed()));
        Ok(job.await?)
    }

    async fn claim(
        &self,
        token: LeaseToken,
        digest: ContentHash,
    ) -> Result<Option<UploadId>, StoreError> {
        let claimed = self
            .write(Reach::ALL, Box::new(move |conn| leases::claim(conn, token, digest).boxed()))
            .await;
        match claimed {
            // Another upload took it between the look and the write; now it is there to be seen.
            Err(error) if error.is_duplicate() => {
                let again = self.write(
                    Reach::ALL,
                    Box::new(move |conn| leases::claim(conn, token, digest).boxed()),
                );
                Ok(again.await?)
            }
            claimed => Ok(claimed?),
        }
    }

    async fn finish(&self, token: LeaseToken, record: &UploadRecord) -> Result<bool, StoreError> {
        let record = record.clone();
        let job = self
            .write(record.org, Box::new(move |conn| leases::finish(conn, token, record).boxed()));
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
            Box::new(move |conn| leases::retry(conn, token, at, failing_since, error).boxed()),
        );
        Ok(job.await?)
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let job =
            self.write(Reach::ALL, Box::new(move |conn| leases::hand_back(conn, holder).boxed()));
        Ok(job.await?)
    }

    async fn list(
        &self,
        org: OrgId,
        repo: RepoId,
        after: Option<(Timestamp, UploadId)>,
        limit: u32,
    ) -> Result<Vec<UploadRecord>, StoreError> {
        let mut conn = self.connection(org).await?;
        let mut query = uploads::table
            .filter(uploads::org_id.eq(Sql(org)))
            .filter(uploads::repo_id.eq(Sql(repo)))
            .into_boxed();
        if let Some((at, id)) = after {
            query = query.filter(
                uploads::created_at
                    .lt(Sql(at))
                    .or(uploads::created_at.eq(Sql(at)).and(uploads::id.lt(Sql(id)))),
            );
        }
        let rows: Vec<Kept<UploadRecord>> = query
            .order((uploads::created_at.desc(), uploads::id.desc()))
            .limit(i64::from(limit))
            .select(uploads::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn trusted_since(
        &self,
        org: OrgId,
        repo: RepoId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadRecord>, StoreError> {
        let mut conn = self.connection(org).await?;
        let rows: Vec<Kept<UploadRecord>> = uploads::table
            .filter(uploads::org_id.eq(Sql(org)))
            .filter(uploads::repo_id.eq(Sql(repo)))
            .filter(uploads::created_at.ge(Sql(since)))
            .filter(uploads::trust.eq(Trust::Token.as_str()))
            .order((uploads::created_at.desc(), uploads::id.desc()))
            .limit(i64::from(limit))
            .select(uploads::document)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(values(rows))
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let old: Vec<UploadId> = uploads::table
                        .filter(uploads::created_at.lt(Sql(before)))
                        .order((uploads::created_at, uploads::id))
                        .limit(i64::from(limit))
                        .select(uploads::id)
                        .load(conn)
                        .await?;
                    let jobs = upload_jobs::table.filter(upload_jobs::upload_id.eq_any(each(&old)));
                    diesel::delete(jobs).execute(conn).await?;
                    let rows = uploads::table.filter(uploads::id.eq_any(each(&old)));
                    let removed = diesel::delete(rows).execute(conn).await?;
                    Ok(u64::try_from(removed).unwrap_or(0))
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn public_id(
        &self,
        org: OrgId,
        repo: RepoId,
        candidate: Uuid,
    ) -> Result<Uuid, StoreError> {
        let job = self.write(
            org,
            Box::new(move |conn| {
                async move {
                    diesel::insert_into(public_repo_ids::table)
                        .values((
                            public_repo_ids::id.eq(Sql(candidate)),
                            public_repo_ids::org_id.eq(Sql(org)),
                            public_repo_ids::repo_id.eq(Sql(repo)),
                        ))
                        .on_conflict(public_repo_ids::repo_id)
                        .do_nothing()
                        .execute(conn)
                        .await?;
                    let kept = public_repo_ids::table
                        .filter(public_repo_ids::org_id.eq(Sql(org)))
                        .filter(public_repo_ids::repo_id.eq(Sql(repo)))
                        .select(public_repo_ids::id)
                        .first(conn)
                        .await?;
                    Ok(kept)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn find_public(&self, id: Uuid) -> Result<Option<(OrgId, RepoId)>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let row = public_repo_ids::table
            .find(Sql(id))
            .select((public_repo_ids::org_id, public_repo_ids::repo_id))
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row)
    }
}
