//! What the server says of itself on its page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use signalbox_domain::ports::{Backlog, StoreError};
use signalbox_domain::queue::Lane;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_persistence::Database;
use signalbox_services::Context;
use signalbox_services::failing;
use signalbox_web::{ServerFact, ServerFacts};

use crate::wiring::App;

/// Facts about a running server.
pub(crate) struct Facts {
    database: Database,
    context: Context,
    stopping: Arc<AtomicBool>,
    started: Timestamp,
    public_url: String,
}

impl Facts {
    /// Of a server that starts now.
    pub(crate) fn of(app: &App) -> Self {
        Self {
            database: app.database.clone(),
            context: app.context.clone(),
            stopping: app.stopping.clone(),
            started: app.context.clock.now(),
            public_url: app.config.public_url(),
        }
    }

    /// Work that nobody has taken, by what it is. It is good while the oldest is younger than the
    /// alert rules in `docs/operations` allow.
    async fn backlogs(&self, now: Timestamp) -> Vec<ServerFact> {
        let stores = &self.context.stores;
        let host = stores.queue.outbox.backlog(Lane::Host, now).await;
        let checks = stores.queue.outbox.backlog(Lane::Checks, now).await;
        let uploads = stores.flaky.uploads.backlog(now).await;
        vec![
            backlog(
                "Calls of git hosts that wait",
                host,
                Span::minutes(2),
                "No server takes them, and queues do not go on: see the log.",
                now,
            ),
            backlog(
                "Checks that wait",
                checks,
                Span::minutes(30),
                "Raise checks.concurrency of the host, or the slots of the queue are too many.",
                now,
            ),
            backlog(
                "Uploads that wait",
                uploads,
                Span::minutes(15),
                "Raise flaky.readers, or look for uploads that cannot be read.",
                now,
            ),
        ]
    }

    /// What has failed for long, and why.
    async fn failing(&self, now: Timestamp) -> ServerFact {
        let name = "Calls of git hosts that keep failing";
        let advice = "The words are the last failure: mend that, and they go on by themselves.";
        let (value, good) =
            match failing::for_long(&*self.context.stores.queue.outbox, now, 1).await {
                Ok(failing) => match failing.longest.first() {
                    Some(longest) => {
                        let minutes = now.since(longest.since).millis() / 60_000;
                        let (count, error) = (failing.count, &longest.error);
                        (format!("{count}, one for {minutes} min: {error}"), false)
                    }
                    None => ("none".to_owned(), true),
                },
                Err(error) => {
                    tracing::warn!(%error, "the status page could not read what fails");
                    ("unknown".to_owned(), false)
                }
            };
        ServerFact { name, value, good, advice }
    }
}

fn backlog(
    name: &'static str,
    asked: Result<Backlog, StoreError>,
    patience: Span,
    advice: &'static str,
    now: Timestamp,
) -> ServerFact {
    let (value, good) = match asked {
        Ok(Backlog { due, oldest }) => {
            let age = oldest.map_or(Span::ZERO, |at| now.since(at));
            let minutes = age.millis() / 60_000;
            let value = match (due, minutes) {
                (0, _) => "none".to_owned(),
                (_, 0) => format!("{due}"),
                (_, _) => format!("{due}, the oldest for {minutes} min"),
            };
            (value, age <= patience)
        }
        Err(error) => {
            tracing::warn!(%error, "the status page could not read what waits");
            ("unknown".to_owned(), false)
        }
    };
    ServerFact { name, value, good, advice }
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
                tracing::warn!(%error, "the status page could not read the database");
                (0, false)
            }
        };
        let took = self.context.clock.now().since(now).millis();
        let kind = if self.database.is_embedded() { "SQLite" } else { "PostgreSQL" };
        let pool = self.database.pool();
        let used = pool.open.saturating_sub(pool.idle);
        let https = self.public_url.starts_with("https://");
        let cookies = if https {
            "bound to this host by https"
        } else {
            "not protected: the address is http"
        };
        let mut facts = vec![
            fact("Version", env!("CARGO_PKG_VERSION").to_owned(), true, ""),
            fact(
                "Running for",
                format!("{up} min"),
                !self.stopping.load(Ordering::SeqCst),
                "It is stopping: nothing new is begun.",
            ),
            fact(
                "Database",
                format!("{kind}, answers in {took} ms"),
                readable,
                "It does not answer: signalbox doctor says why.",
            ),
            fact(
                "Connections to it",
                format!("{used} of {} in use, {} wait", pool.max, pool.waiting),
                pool.waiting == 0,
                "Requests wait for a connection: the database is slow, or has too much to do.",
            ),
            fact(
                "Migrations to do",
                pending.to_string(),
                pending == 0,
                "Run signalbox migrate up.",
            ),
        ];
        facts.extend(self.backlogs(now).await);
        facts.push(self.failing(now).await);
        facts.push(fact("Public address", self.public_url.clone(), true, ""));
        facts.push(fact("Cookies", cookies.to_owned(), true, ""));
        facts
    }
}
