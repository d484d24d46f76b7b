//! The database: tables behind one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signalbox_domain::ports::{StoreError, Stores};

use super::tables::Tables;

/// A database in memory. Clones share their contents.
#[derive(Clone, Debug, Default)]
pub struct MemoryDatabase(Arc<Mutex<Tables>>);

impl MemoryDatabase {
    /// An empty database.
    pub fn new() -> Self {
        Self::default()
    }

    /// All stores on this database.
    pub fn stores(&self) -> Stores {
        let shared = Arc::new(self.clone());
        Stores {
            queues: shared.clone(),
            outbox: shared.clone(),
            reads: shared.clone(),
            history: shared.clone(),
            orgs: shared.clone(),
            tokens: shared.clone(),
            sessions: shared.clone(),
            repos: shared.clone(),
            pull_requests: shared.clone(),
            check_log: shared.clone(),
            uploads: shared.clone(),
            flaky: shared.clone(),
            heard: shared.clone(),
            announcements: shared.clone(),
            flaky_reads: shared.clone(),
            event_log: shared.clone(),
            audit: shared.clone(),
            retention: shared.clone(),
            jobs: shared.clone(),
            agenda: shared.clone(),
            webhooks: shared,
        }
    }

    /// The tables, for one statement. Every method takes the lock once, so it is atomic. A test
    /// that panics elsewhere must not hide behind a poisoned lock.
    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement that breaks a rule which a database would keep by a constraint.
pub(super) fn refused(rule: String) -> StoreError {
    StoreError::Failed(rule.into())
}
