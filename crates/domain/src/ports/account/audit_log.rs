//! The audit log.

use async_trait::async_trait;
use uuid::Uuid;

use crate::audit::{AuditAction, AuditRecord};
use crate::ids::{OrgId, RepoName, TokenId};
use crate::ports::StoreError;
use crate::time::{Timestamp, Window};

/// A filter for records. A field that is `None` or empty does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only this action.
    pub action: Option<AuditAction>,
    /// Only changes by this token.
    pub token: Option<TokenId>,
    /// Only this object, compared as a whole.
    pub object: Option<String>,
    /// Only these repositories, compared case-insensitively. Records without a repository are then
    /// excluded.
    pub repos: Vec<RepoName>,
    /// Only changes in this window.
    pub window: Window,
}

/// A position in the log, which is ordered by time and then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditPlace {
    /// The record's time.
    pub at: Timestamp,
    /// The record's id.
    pub id: Uuid,
}

/// Stores the audit log. Changes of queues and of flaky tests write their record in the commit of
/// the change itself: see [`crate::ports::Commit`] and [`crate::ports::FlakyCommit`].
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Writes a record of a change that has no commit of its own.
    async fn append(&self, record: &AuditRecord) -> Result<(), StoreError>;

    /// Lists records of one organization, or of all for `None`, newest first, older than a position
    /// if given, at most `limit`.
    async fn list(
        &self,
        org: Option<OrgId>,
        filter: &AuditFilter,
        before: Option<AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError>;

    /// Deletes the oldest records from before a time, at most `limit`; returns the number of
    /// deleted records.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
