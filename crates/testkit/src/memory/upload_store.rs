//! The store of uploads.

use async_trait::async_trait;
use signalbox_domain::flaky::{Trust, UploadId};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{Backlog, LeaseToken, LeasedUpload, StoreError, UploadStore};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{ContentHash, Received, UploadRecord, UploadState};
use uuid::Uuid;

use super::MemoryDatabase;
use super::tables::{Lease, Tables, UploadJob, UploadRow};

#[async_trait]
impl UploadStore for MemoryDatabase {
    async fn create(
        &self,
        record: &UploadRecord,
        secret: Option<ContentHash>,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        if tables.uploads.contains_key(&record.id) {
            return Ok(false);
        }
        let row = UploadRow { record: record.clone(), secret, digest: None };
        tables.uploads.insert(record.id, row);
        Ok(true)
    }

    async fn find(&self, org: OrgId, id: UploadId) -> Result<Option<UploadRecord>, StoreError> {
        Ok(self.tables().upload(org, id).map(|row| row.record.clone()))
    }

    async fn find_by_secret(
        &self,
        id: UploadId,
        secret: ContentHash,
    ) -> Result<Option<UploadRecord>, StoreError> {
        let tables = self.tables();
        let row = tables.uploads.get(&id).filter(|row| row.secret == Some(secret));
        Ok(row.map(|row| row.record.clone()))
    }

    async fn receive(
        &self,
        org: OrgId,
        id: UploadId,
        received: &Received,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let Some(row) = tables.uploads.get_mut(&id).filter(|row| row.record.org == org) else {
            return Ok(false);
        };
        if row.record.state != UploadState::Awaited {
            return Ok(false);
        }
        row.record.state = UploadState::Received;
        row.record.received = Some(received.clone());
        tables.last_upload_job += 1;
        let number = tables.last_upload_job;
        let job = UploadJob {
            upload: id,
            due_at: received.at,
            attempts: 0,
            failing_since: None,
            last_error: None,
            lease: None,
        };
        tables.upload_jobs.insert(number, job);
        Ok(true)
    }

    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedUpload>, StoreError> {
        let mut tables = self.tables();
        let free = |job: &UploadJob| {
            job.due_at <= now && job.lease.as_ref().is_none_or(|lease| lease.until <= now)
        };
        let due = tables.upload_jobs.iter().filter(|(_, job)| free(job));
        let mut due: Vec<(Timestamp, i64)> = due.map(|(row, job)| (job.due_at, *row)).collect();
        due.sort_unstable();
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut leased = Vec::with_capacity(due.len());
        for (_, row) in due {
            tables.last_lease += 1;
            let lease = Uuid::from_u128(tables.last_lease);
            let Some(job) = tables.upload_jobs.get_mut(&row) else { continue };
            job.lease = Some(Lease { id: lease, holder, until });
            job.attempts += 1;
            let (upload, attempts, failing_since) =
                (job.upload, job.attempts - 1, job.failing_since);
            let Some(upload) = tables.uploads.get(&upload) else { continue };
            let (token, record) = (LeaseToken { row, lease }, upload.record.clone());
            leased.push(LeasedUpload { token, record, attempts, failing_since });
        }
        Ok(leased)
    }

    async fn backlog(&self, now: Timestamp) -> Result<Backlog, StoreError> {
        let tables = self.tables();
        let free = |job: &&UploadJob| {
            job.due_at <= now && job.lease.as_ref().is_none_or(|lease| lease.until <= now)
        };
        let due: Vec<Timestamp> =
            tables.upload_jobs.values().filter(free).map(|job| job.due_at).collect();
        let count = u64::try_from(due.len()).unwrap_or(u64::MAX);
        Ok(Backlog { due: count, oldest: due.into_iter().min() })
    }

    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let lease = held(&mut tables, token).and_then(|job| job.lease.as_mut());
        Ok(lease.map(|lease| lease.until = until).is_some())
    }

    async fn claim(
        &self,
        token: LeaseToken,
        digest: ContentHash,
    ) -> Result<Option<UploadId>, StoreError> {
        let mut tables = self.tables();
        let Some(id) = held(&mut tables, token).map(|job| job.upload) else { return Ok(None) };
        let Some(repo) = tables.uploads.get(&id).map(|row| row.record.repo) else {
            return Ok(None);
        };
        let same = |row: &&UploadRow| row.record.repo == repo && row.digest == Some(digest);
        if let Some(owner) = tables.uploads.values().find(same) {
            return Ok(Some(owner.record.id));
        }
        if let Some(row) = tables.uploads.get_mut(&id) {
            row.digest = Some(digest);
        }
        Ok(Some(id))
    }

    async fn finish(&self, token: LeaseToken, record: &UploadRecord) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        if held(&mut tables, token).is_none() {
            return Ok(false);
        }
        tables.upload_jobs.remove(&token.row);
        if let Some(row) = tables.uploads.get_mut(&record.id) {
            row.record = record.clone();
            if record.state == UploadState::Failed {
                row.digest = None;
            }
        }
        Ok(true)
    }

    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let Some(job) = held(&mut tables, token) else { return Ok(false) };
        job.due_at = at;
        job.failing_since = Some(failing_since);
        job.last_error = Some(error.to_owned());
        job.lease = None;
        Ok(true)
    }

    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut given_back = 0;
        for job in tables.upload_jobs.values_mut() {
            if job.lease.take_if(|lease| holder.is_none_or(|it| lease.holder == it)).is_some() {
                given_back += 1;
            }
        }
        Ok(given_back)
    }

    async fn list(
        &self,
        org: OrgId,
        repo: RepoId,
        after: Option<(Timestamp, UploadId)>,
        limit: u32,
    ) -> Result<Vec<UploadRecord>, StoreError> {
        let tables = self.tables();
        let place = |record: &UploadRecord| (record.created_at, record.id);
        let own = tables.uploads.values().map(|row| &row.record);
        let own = own.filter(|it| it.org == org && it.repo == repo);
        let mut records: Vec<UploadRecord> =
            own.filter(|it| after.is_none_or(|after| place(it) < after)).cloned().collect();
        records.sort_by_key(|it| std::cmp::Reverse(place(it)));
        records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(records)
    }

    async fn trusted_since(
        &self,
        org: OrgId,
        repo: RepoId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadRecord>, StoreError> {
        let mut records = self.list(org, repo, None, u32::MAX).await?;
        records.retain(|it| it.trust == Trust::Token && it.created_at >= since);
        records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(records)
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut old: Vec<(Timestamp, UploadId)> =
            tables.uploads.values().map(|row| (row.record.created_at, row.record.id)).collect();
        old.retain(|(at, _)| *at < before);
        old.sort_unstable();
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for (_, id) in &old {
            tables.uploads.remove(id);
            tables.upload_jobs.retain(|_, job| job.upload != *id);
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }

    async fn public_id(
        &self,
        org: OrgId,
        repo: RepoId,
        candidate: Uuid,
    ) -> Result<Uuid, StoreError> {
        let mut tables = self.tables();
        let known = tables.public_ids.iter().find(|(_, it)| **it == (org, repo));
        if let Some((id, _)) = known {
            return Ok(*id);
        }
        tables.public_ids.insert(candidate, (org, repo));
        Ok(candidate)
    }

    async fn find_public(&self, id: Uuid) -> Result<Option<(OrgId, RepoId)>, StoreError> {
        Ok(self.tables().public_ids.get(&id).copied())
    }
}

/// The job of a lease, if the lease is valid.
fn held(tables: &mut Tables, token: LeaseToken) -> Option<&mut UploadJob> {
    let job = tables.upload_jobs.get_mut(&token.row)?;
    job.lease.as_ref().is_some_and(|lease| lease.id == token.lease).then_some(job)
}
