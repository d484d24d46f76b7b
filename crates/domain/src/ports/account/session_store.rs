//! Sessions of the pages.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::session::{Session, SessionHash};
use crate::time::Timestamp;

/// Stores sessions by the hash of their text.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Writes a new session.
    async fn begin(&self, session: &Session) -> Result<(), StoreError>;

    /// The session with this hash, including an expired one.
    async fn session(&self, hash: SessionHash) -> Result<Option<Session>, StoreError>;

    /// Records that a session is in use, unless a later use is recorded.
    async fn note_use(&self, hash: SessionHash, at: Timestamp) -> Result<(), StoreError>;

    /// Removes a session; `false` if there was none.
    async fn end(&self, hash: SessionHash) -> Result<bool, StoreError>;

    /// Removes sessions that were last used before `seen` or created before `created`; returns the
    /// number of removed sessions.
    async fn prune(&self, seen: Timestamp, created: Timestamp) -> Result<u64, StoreError>;
}
