//! Uploads, and the work of reading them.

use async_trait::async_trait;
use uuid::Uuid;

use crate::flaky::UploadId;
use crate::ids::{OrgId, RepoId};
use crate::ports::{Backlog, LeaseToken, StoreError};
use crate::time::Timestamp;
use crate::upload::{ContentHash, Received, UploadRecord};

/// An upload that was leased to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedUpload {
    /// Proof of the lease.
    pub token: LeaseToken,
    /// The upload.
    pub record: UploadRecord,
    /// How often it was leased before.
    pub attempts: u32,
    /// When the first try failed, if it did.
    pub failing_since: Option<Timestamp>,
}

/// Keeps uploads and leases them to be read. At least once: what is leased and not finished comes
/// back.
#[async_trait]
pub trait UploadStore: Send + Sync {
    /// Writes an upload, with the hash of the secret that allows to send its bytes. Nothing is
    /// written when there is one with its id; `false` then.
    async fn create(
        &self,
        record: &UploadRecord,
        secret: Option<ContentHash>,
    ) -> Result<bool, StoreError>;

    /// The organization's upload with that id.
    async fn find(&self, org: OrgId, id: UploadId) -> Result<Option<UploadRecord>, StoreError>;

    /// The upload with that id and that secret, whoever owns it: the secret is the permission.
    async fn find_by_secret(
        &self,
        id: UploadId,
        secret: ContentHash,
    ) -> Result<Option<UploadRecord>, StoreError>;

    /// Notes the bytes of an upload that waits for them, and that they are to be read. `false` when
    /// it does not wait, or no longer: then nothing is changed.
    async fn receive(
        &self,
        org: OrgId,
        id: UploadId,
        received: &Received,
    ) -> Result<bool, StoreError>;

    /// Takes up to `limit` uploads that are to be read, are due at `now` and not under a lease that
    /// is still good, oldest first, for `holder` until `until`. None is given to two at once.
    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedUpload>, StoreError>;

    /// How much waits to be read.
    async fn backlog(&self, now: Timestamp) -> Result<Backlog, StoreError>;

    /// Extends a lease. `false` when it was lost.
    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError>;

    /// Takes a digest of what an upload reports for it, within its repository. Returns the upload
    /// that has the digest: itself, or the one that had it first. `None` when the lease was lost.
    async fn claim(
        &self,
        token: LeaseToken,
        digest: ContentHash,
    ) -> Result<Option<UploadId>, StoreError>;

    /// Writes what became of an upload and ends its lease. One that failed gives its digest back.
    /// `false` when the lease was lost; then nothing is written.
    async fn finish(&self, token: LeaseToken, record: &UploadRecord) -> Result<bool, StoreError>;

    /// Gives an upload back, to be tried again from `at` on. `false` when the lease was lost.
    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError>;

    /// Gives back everything that `holder` has leased, due at once; everything that anybody has
    /// leased for `None`, which only the start of the only server on a database may ask for.
    async fn hand_back(&self, holder: Option<Uuid>) -> Result<u64, StoreError>;

    /// Uploads of a repository, newest first: up to `limit` that come after `after`, which is the
    /// last of the page before.
    async fn list(
        &self,
        org: OrgId,
        repo: RepoId,
        after: Option<(Timestamp, UploadId)>,
        limit: u32,
    ) -> Result<Vec<UploadRecord>, StoreError>;

    /// Removes up to `limit` uploads that were created before that time, with their work. Returns
    /// how many were removed.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// The public id of a repository: the one that it has, or `candidate`, which it then keeps.
    async fn public_id(
        &self,
        org: OrgId,
        repo: RepoId,
        candidate: Uuid,
    ) -> Result<Uuid, StoreError>;

    /// Whose repository has that public id.
    async fn find_public(&self, id: Uuid) -> Result<Option<(OrgId, RepoId)>, StoreError>;
}
