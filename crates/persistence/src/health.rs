//! Health checks of a database: a read and a small write.

use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use tokio::time::timeout;

use crate::database::{ConnectError, Database, Kind};
use crate::error::DbError;
use crate::reach::Reach;

/// The time limit of each check.
const LIMIT: Duration = Duration::from_secs(3);

/// A write that reaches the disk but does not grow the database.
const WRITE: &str = "UPDATE write_probe SET writes = writes + 1 WHERE id = 1";

/// Finds transactions of our servers that have written and then been idle for so long that their
/// server must be frozen or lost. They hold their locks until the database ends them.
const SILENT: &str = "SELECT count(*) AS many FROM pg_stat_activity \
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid() \
    AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '2 s' \
    AND (backend_xid IS NOT NULL OR pid IN (SELECT pid FROM pg_locks \
    WHERE locktype = 'advisory' AND granted))";

/// A failed health check of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ailment {
    /// The failed part: `database`, `migrations`, `writes`.
    pub part: &'static str,
    /// The cause.
    pub words: String,
}

impl Ailment {
    fn new(part: &'static str, words: impl Into<String>) -> Self {
        Self { part, words: words.into() }
    }
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    many: i64,
}

impl Database {
    /// Runs the health checks; returns the failed ones. Writes a small row, and takes a few seconds
    /// at most.
    pub async fn ailments(&self) -> Vec<Ailment> {
        let late = || format!("no answer within {} s", LIMIT.as_secs());
        let mut found = Vec::new();
        match timeout(LIMIT, self.migration_status()).await {
            Err(_) => return vec![Ailment::new("database", late())],
            Ok(Err(error)) => return vec![Ailment::new("database", words(&error))],
            Ok(Ok(status)) if status.pending.is_empty() => {}
            Ok(Ok(status)) => {
                let many = status.pending.len();
                let words = format!("{many} migrations are pending: run signalbox migrate up");
                // The next checks may depend on them.
                return vec![Ailment::new("migrations", words)];
            }
        }
        match timeout(LIMIT, self.write_probe()).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                found.push(Ailment::new("writes", "a small write has been waiting too long"));
            }
            Ok(Err(error)) => found.push(Ailment::new("writes", error.in_short())),
            Err(_) => found.push(Ailment::new("writes", late())),
        }
        if found.is_empty()
            && let Some(trouble) = self.troubles().lately()
        {
            found.push(Ailment::new("writes", trouble.words()));
        }
        if let Ok(Some(silent)) = timeout(LIMIT, self.silent_transactions()).await {
            found.push(Ailment::new("writes", silent));
        }
        found
    }

    /// Writes a small row; `false` if an earlier write is not done yet.
    async fn write_probe(&self) -> Result<bool, DbError> {
        macro_rules! probe {
            ($store:expr) => {{
                let Ok(turn) = $store.probes().try_acquire_owned() else { return Ok(false) };
                let job = $store.write(
                    Reach::ALL,
                    Box::new(move |conn| {
                        async move {
                            diesel::sql_query(WRITE).execute(conn).await?;
                            drop(turn);
                            Ok(())
                        }
                        .boxed()
                    }),
                );
                job.await.map(|()| true)
            }};
        }
        match self.kind() {
            Kind::Sqlite(store) => probe!(store),
            Kind::Postgres(store) => probe!(store),
        }
    }

    /// Whether another server is frozen during a transaction.
    async fn silent_transactions(&self) -> Option<String> {
        let Kind::Postgres(store) = self.kind() else { return None };
        // A failing database is reported by the write.
        let mut conn = store.connection(Reach::ALL).await.ok()?;
        let found: Count = diesel::sql_query(SILENT).get_result(&mut conn).await.ok()?;
        (found.many > 0)
            .then(|| "another server is frozen during a transaction and may hold locks".into())
    }
}

/// A short message, for users without access to the log.
fn words(error: &ConnectError) -> String {
    match error {
        ConnectError::Connection(error) => crate::error::in_short(error),
        ConnectError::UnknownScheme | ConnectError::NewerSchema(_) | ConnectError::Migration(_) => {
            error.to_string()
        }
    }
}
