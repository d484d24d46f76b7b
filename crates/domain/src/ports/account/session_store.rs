//! Sessions of the pages.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::session::{Session, SessionHash};
use crate::time::Timestamp;

/// Keeps sessions by the hash of their text.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Writes a new session.
    async fn begin(&self, session: &Session) -> Result<(), StoreError>;

    /// The session with that hash, also one that has ended by time.
    async fn session(&self, hash: SessionHash) -> Result<Option<Session>, StoreError>;

    /// Notes that a session is in use, unless a later use is noted already.
    async fn note_use(&self, hash: SessionHash, at: Timestamp) -> Result<(), StoreError>;

    /// Removes a session. `false` when there was none.
    async fn end(&self, hash: SessionHash) -> Result<bool, StoreError>;

    /// Removes sessions that were last in use before `seen`, or were begun before `created`.
    /// Returns how many.
    async fn prune(&self, seen: Timestamp, created: Timestamp) -> Result<u64, StoreError>;
}
