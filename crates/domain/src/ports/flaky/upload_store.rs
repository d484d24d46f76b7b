//! Uploads, and leases for processing them.

use async_trait::async_trait;
use uuid::Uuid;

use crate::flaky::UploadId;
use crate::ids::{OrgId, RepoId};
use crate::ports::{Backlog, LeaseToken, StoreError};
use crate::time::Timestamp;
use crate::upload::{ContentHash, Received, UploadRecord};

/// A leased upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedUpload {
    /// Proof of the lease.
    pub token: LeaseToken,
    /// The upload.
    pub record: UploadRecord,
    /// The number of earlier leases.
    pub attempts: u32,
    /// When the first attempt failed, if it did.
    pub failing_since: Option<Timestamp>,
}

/// Stores uploads and leases them for processing. Delivery is at least once: an upload that is
/// leased and not finished becomes due again.
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

    /// The upload with this id and this secret, of any organization: the secret is the permission.
    async fn find_by_secret(
        &self,
        id: UploadId,
        secret: ContentHash,
    ) -> Result<Option<UploadRecord>, StoreError>;

    /// Records the bytes of an upload and makes it due for processing; `false`, and nothing is
    /// changed, if it does not wait for bytes.
    async fn receive(
        &self,
        org: OrgId,
        id: UploadId,
        received: &Received,
    ) -> Result<bool, StoreError>;

    /// Leases up to `limit` received uploads that are due at `now` and not under a valid lease,
    /// oldest first, to `holder` until `until`. No upload has two valid leases.
    async fn lease(
        &self,
        limit: u32,
        holder: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LeasedUpload>, StoreError>;

    /// The backlog of uploads.
    async fn backlog(&self, now: Timestamp) -> Result<Backlog, StoreError>;

    /// Extends a lease; `false` if it was lost.
    async fn renew(&self, token: LeaseToken, until: Timestamp) -> Result<bool, StoreError>;

    /// Takes a digest of what an upload reports for it, within its repository. Returns the upload
    /// that has the digest: itself, or the one that had it first. `None` when the lease was lost.
    async fn claim(
        &self,
        token: LeaseToken,
        digest: ContentHash,
    ) -> Result<Option<UploadId>, StoreError>;

    /// Writes the outcome of an upload and ends its lease. A failed upload releases its digest.
    /// `false`, and nothing is written, if the lease was lost.
    async fn finish(&self, token: LeaseToken, record: &UploadRecord) -> Result<bool, StoreError>;

    /// Ends a lease; the upload is due again at `at`. `false` if the lease was lost.
    async fn retry(
        &self,
        token: LeaseToken,
        at: Timestamp,
        failing_since: Timestamp,
        error: &str,
    ) -> Result<bool, StoreError>;

    /// Ends every lease of `holder`, or all leases for `None`; the uploads are due immediately.
    /// `None` is only valid at the start of the only server on a database.
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

    /// Up to `limit` uploads of a repository that were sent with a token and created since a time, the
    /// newest first.
    async fn trusted_since(
        &self,
        org: OrgId,
        repo: RepoId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadRecord>, StoreError>;

    /// Deletes up to `limit` uploads that were created before a time, with their leases; returns
    /// the number of deleted uploads.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// The public id of a repository: the one that it has, or `candidate`, which it then keeps.
    async fn public_id(
        &self,
        org: OrgId,
        repo: RepoId,
        candidate: Uuid,
    ) -> Result<Uuid, StoreError>;

    /// The organization and the repository with this public id.
    async fn find_public(&self, id: Uuid) -> Result<Option<(OrgId, RepoId)>, StoreError>;
}
