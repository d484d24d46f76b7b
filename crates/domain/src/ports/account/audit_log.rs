//! The audit log.

use async_trait::async_trait;
use uuid::Uuid;

use crate::audit::{AuditAction, AuditRecord};
use crate::ids::{OrgId, RepoName, TokenId};
use crate::ports::StoreError;
use crate::time::{Timestamp, Window};

/// Which records are wanted. What is `None` or empty does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of one kind of change.
    pub action: Option<AuditAction>,
    /// By one token.
    pub token: Option<TokenId>,
    /// Of one object, by its whole text.
    pub object: Option<String>,
    /// Of these repositories, whatever the case of their names. Records that belong to no
    /// repository are left out then.
    pub repos: Vec<RepoName>,
    /// Of that time.
    pub window: Window,
}

/// A place in the log: records are ordered by time and then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditPlace {
    /// When.
    pub at: Timestamp,
    /// Which of that time.
    pub id: Uuid,
}

/// Keeps the audit log. Changes of queues and of flaky tests write their record in the commit of
/// the change itself: see [`crate::ports::Commit`] and [`crate::ports::FlakyCommit`].
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Writes a record of a change that has no commit of its own.
    async fn append(&self, record: &AuditRecord) -> Result<(), StoreError>;

    /// Records of one organization, or of all for `None`, newest first, older than a place if
    /// given, at most `limit`.
    async fn list(
        &self,
        org: Option<OrgId>,
        filter: &AuditFilter,
        before: Option<AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError>;

    /// Deletes the oldest records from before a time, at most `limit`; returns how many.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
