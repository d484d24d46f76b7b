//! The event log: every public event of an organization, in one order.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ids::{OrgId, RepoId};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// A public event and its position in the organization's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicEvent {
    /// Its position: higher for later events, not necessarily consecutive.
    pub position: i64,
    /// Its id, the same in every delivery and read.
    pub id: Uuid,
    /// The organization.
    pub org: OrgId,
    /// The repository, if it concerns one.
    pub repo: Option<RepoId>,
    /// Its public name, such as `pull_request.merged`.
    pub kind: String,
    /// When it happened.
    pub at: Timestamp,
    /// The payload as JSON, byte for byte as published.
    pub payload: String,
    /// The id of the request that caused it, if any; not published.
    pub request: Option<String>,
}

/// Reads the event log.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Events after a position, in order, at most `limit`; of some kinds if given. An event that is
    /// committed later never has a position below one that was already returned.
    async fn after(
        &self,
        org: OrgId,
        position: i64,
        kinds: Option<&[String]>,
        limit: u32,
    ) -> Result<Vec<PublicEvent>, StoreError>;

    /// The event with this id.
    async fn event(&self, org: OrgId, id: Uuid) -> Result<Option<PublicEvent>, StoreError>;

    /// The highest position that `after` may return; 0 without events.
    async fn newest(&self, org: OrgId) -> Result<i64, StoreError>;

    /// Deletes events from before a time, at most `limit`; returns the number of deleted events.
    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
