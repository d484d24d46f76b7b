//! The event log: every public event of an organization, in one order.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::{OrgId, RepoId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// A public event with its place in the organization's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicEvent {
    /// Its position: later events have higher ones. Positions are not dense.
    pub position: i64,
    /// Its id, the same wherever and however often it is told.
    pub id: Uuid,
    /// Whose.
    pub org: OrgId,
    /// The repository it is about, if it is about one.
    pub repo: Option<RepoId>,
    /// Its public name, such as `pull_request.merged`.
    pub kind: String,
    /// When it happened.
    pub at: Timestamp,
    /// The payload as JSON, exactly as it leaves the house.
    pub payload: String,
    /// The request that has caused it, if one has. It does not leave the house.
    pub request: Option<String>,
}

/// Reads the event log.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Events after a position, in order, at most `limit`; of some kinds if given. An event that
    /// is committed later never has a position below one that was already shown.
    async fn after(
        &self,
        org: OrgId,
        position: i64,
        kinds: Option<&[String]>,
        limit: u32,
    ) -> Result<Vec<PublicEvent>, StoreError>;

    /// One event by its id.
    async fn event(&self, org: OrgId, id: Uuid) -> Result<Option<PublicEvent>, StoreError>;

    /// The newest position that `after` may show; 0 when there is none.
    async fn newest(&self, org: OrgId) -> Result<i64, StoreError>;

    /// Deletes events from before that time, at most `limit`. Returns how many.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
