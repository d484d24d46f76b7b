//! The server's page: version, database, connections and backlog.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use signalbox_domain::queue::EffectClass;
use signalbox_domain::time::Timestamp;
use signalbox_persistence::Database;
use signalbox_services::{Context, failing};
use signalbox_web::{ServerFact, ServerFacts};

use crate::wiring::App;

/// The state of a running server.
pub(crate) struct Facts {
    database: Database,
    context: Context,
    stopping: Arc<AtomicBool>,
    started: Timestamp,
    public_url: String,
    lost_key: Option<String>,
}

impl Facts {
    /// For a server that starts now.
    pub(crate) fn of(app: &App) -> Self {
        Self {
            database: app.database.clone(),
            context: app.context.clone(),
            stopping: app.stopping.clone(),
            started: app.context.clock.now(),
            public_url: app.config.public_url(),
            lost_key: app.lost_key.as_ref().map(ToString::to_string),
        }
    }

    /// Work that no server has leased, and effects that keep failing.
    async fn work(&self, now: Timestamp) -> Vec<ServerFact> {
        let stores = &self.context.stores;
        let host = known(stores.queue.outbox.backlog(EffectClass::Host, now).await);
        let checks = known(stores.queue.outbox.backlog(EffectClass::Checks, now).await);
        let uploads = known(stores.flaky.uploads.backlog(now).await);
        let failing = known(failing::for_long(&*stores.queue.outbox, now, 1).await);
        ServerFact::of_work([host, checks, uploads], failing.as_ref(), now)
    }
}

/// The value; `None` when the database does not respond.
fn known<T, E: Display>(read: Result<T, E>) -> Option<T> {
    read.inspect_err(
        |error| tracing::warn!(%error, "could not read the backlog for the server's page"),
    )
    .ok()
}

#[async_trait]
impl ServerFacts for Facts {
    async fn facts(&self) -> Vec<ServerFact> {
        let fact = |name, value: String, good, advice| ServerFact { name, value, good, advice };
        let now = self.context.clock.now();
        let up = now.since(self.started).to_std().as_secs() / 60;
        let (pending, readable) = match self.database.migration_status().await {
            Ok(status) => (status.pending.len(), true),
            Err(error) => {
                tracing::warn!(%error, "could not read the database for the status page");
                (0, false)
            }
        };
        let took = self.context.clock.now().since(now).millis();
        let kind = if self.database.is_embedded() { "SQLite" } else { "PostgreSQL" };
        let pool = self.database.pool();
        let used = pool.open.saturating_sub(pool.idle);
        let https = self.public_url.starts_with("https://");
        let cookies = if https {
            "restricted to this host by https"
        } else {
            "not protected: the address is http"
        };
        let mut facts = vec![
            fact("Version", env!("CARGO_PKG_VERSION").to_owned(), true, ""),
            fact(
                "Running for",
                format!("{up} min"),
                !self.stopping.load(Ordering::SeqCst),
                "Stopping: no new work starts.",
            ),
            fact(
                "Database",
                format!("{kind}, responds in {took} ms"),
                readable,
                "It does not respond: run signalbox doctor to find out why.",
            ),
            fact(
                "Database connections",
                format!("{used} of {} in use, {} waiting", pool.max, pool.waiting),
                pool.waiting == 0,
                "Requests wait for a connection: the database is slow or overloaded.",
            ),
            fact(
                "Pending migrations",
                pending.to_string(),
                pending == 0,
                "Run signalbox migrate up.",
            ),
        ];
        facts.extend(self.work(now).await);
        let webhooks = self.lost_key.clone().unwrap_or_else(|| "on".to_owned());
        let off = "Messages wait until a server has the key.";
        facts.push(fact("Webhooks", webhooks, self.lost_key.is_none(), off));
        facts.push(fact("Public address", self.public_url.clone(), true, ""));
        facts.push(fact("Cookies", cookies.to_owned(), true, ""));
        facts
    }
}
