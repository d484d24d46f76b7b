//! Sessions of the pages.

use async_trait::async_trait;
use signalbox_domain::ports::{SessionStore, StoreError};
use signalbox_domain::session::{Session, SessionHash};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;
use super::database::refused;

#[async_trait]
impl SessionStore for MemoryDatabase {
    async fn begin(&self, session: &Session) -> Result<(), StoreError> {
        match self.tables().sessions.insert(session.hash, session.clone()) {
            None => Ok(()),
            Some(_) => Err(refused("duplicate session hash".to_owned())),
        }
    }

    async fn session(&self, hash: SessionHash) -> Result<Option<Session>, StoreError> {
        Ok(self.tables().sessions.get(&hash).cloned())
    }

    async fn note_use(&self, hash: SessionHash, at: Timestamp) -> Result<(), StoreError> {
        if let Some(session) = self.tables().sessions.get_mut(&hash) {
            session.seen_at = session.seen_at.max(at);
        }
        Ok(())
    }

    async fn end(&self, hash: SessionHash) -> Result<bool, StoreError> {
        Ok(self.tables().sessions.remove(&hash).is_some())
    }

    async fn prune(&self, seen: Timestamp, created: Timestamp) -> Result<u64, StoreError> {
        let sessions = &mut self.tables().sessions;
        let before = sessions.len();
        sessions.retain(|_, session| session.seen_at >= seen && session.created_at >= created);
        Ok(u64::try_from(before - sessions.len()).unwrap_or(u64::MAX))
    }
}
