//! The database: tables behind one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signalbox_domain::ports::{
    AccountStores, FlakyStores, HostStores, QueueStores, RuntimeStores, StoreError, Stores,
    WebhookStores,
};

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
            queue: QueueStores {
                queues: shared.clone(),
                outbox: shared.clone(),
                reads: shared.clone(),
                history: shared.clone(),
                announcements: shared.clone(),
                check_log: shared.clone(),
            },
            flaky: FlakyStores {
                tests: shared.clone(),
                reads: shared.clone(),
                trend: shared.clone(),
                uploads: shared.clone(),
            },
            webhook: WebhookStores { endpoints: shared.clone(), event_log: shared.clone() },
            account: AccountStores {
                orgs: shared.clone(),
                repos: shared.clone(),
                tokens: shared.clone(),
                sessions: shared.clone(),
                idempotency: shared.clone(),
                audit: shared.clone(),
            },
            host: HostStores { pull_requests: shared.clone(), inbound_deliveries: shared.clone() },
            runtime: RuntimeStores {
                agenda: shared.clone(),
                jobs: shared.clone(),
                retention: shared,
            },
        }
    }

    /// The tables, for one statement. Every method takes the lock once, so it is atomic. A test
    /// that panics elsewhere must not hide behind a poisoned lock.
    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a violated constraint.
pub(super) fn refused(rule: String) -> StoreError {
    StoreError::Failed(rule.into())
}
