//! The readiness probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use signalbox_http::Readiness;
use signalbox_persistence::{Ailment, Database};
use tokio::sync::Mutex;

/// How long a result is cached: more frequent requests get the same result, and the database is
/// written to once.
const FRESH: Duration = Duration::from_secs(1);

/// Checks the database once for concurrent requests.
pub(crate) struct Probe {
    database: Database,
    stopping: Arc<AtomicBool>,
    last: Mutex<Option<(Instant, Vec<Ailment>)>>,
}

impl Probe {
    pub(crate) fn new(database: Database, stopping: Arc<AtomicBool>) -> Self {
        Self { database, stopping, last: Mutex::new(None) }
    }

    /// The problems of the database, as of the last second.
    async fn ailments(&self) -> Vec<Ailment> {
        let mut last = self.last.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < FRESH
        {
            return found.clone();
        }
        let found = self.database.ailments().await;
        let before = last.replace((Instant::now(), found.clone()));
        let before = before.map(|(_, before)| before).unwrap_or_default();
        if found != before {
            for Ailment { part, words } in &found {
                tracing::error!(part, "not ready: {words}");
            }
            if found.is_empty() {
                tracing::info!("ready again");
            }
        }
        found
    }
}

#[async_trait]
impl Readiness for Probe {
    async fn missing(&self) -> Option<String> {
        if self.stopping.load(Ordering::SeqCst) {
            return Some("the server is stopping".to_owned());
        }
        let found = self.ailments().await;
        let parts = found.iter().map(|Ailment { part, words }| format!("{part}: {words}"));
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
