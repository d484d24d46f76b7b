//! Opening a database and migrating its schema.

use diesel::dsl::sql;
use diesel::migration::{Migration, MigrationSource, MigrationVersion};
use diesel::prelude::*;
use diesel::sql_types::Bool;
use diesel_async::{AsyncMigrationHarness, RunQueryDsl, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use signalbox_domain::ports::{StoreError, Stores};
use thiserror::Error;

use crate::error::DbError;
use crate::private_file::create_private;
use crate::reach::Reach;
use crate::trouble::Troubles;
use crate::{postgres, sqlite};

const SQLITE: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");
const POSTGRES: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");

/// The advisory lock that serializes migrations of several servers.
const MIGRATION_LOCK: i64 = 0x5369_676e_616c;

/// Why a database could not be opened or migrated.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The URL has another scheme than `sqlite` and `postgres`.
    #[error("database URL must start with sqlite:// or postgres://")]
    UnknownScheme,
    /// The connection failed.
    #[error("could not open the database")]
    Connection(#[source] StoreError),
    /// The schema is newer than this version.
    #[error(
        "the database has migration {0}, which this version does not know: use the newer version"
    )]
    NewerSchema(String),
    /// A migration failed.
    #[error("could not migrate the database: {0}")]
    Migration(String),
}

impl From<DbError> for ConnectError {
    fn from(error: DbError) -> Self {
        Self::Connection(error.into())
    }
}

/// The migrations of a database, by version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationStatus {
    /// Applied migrations.
    pub applied: Vec<String>,
    /// Pending migrations.
    pub pending: Vec<String>,
}

/// The connection pool of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    /// The maximum number of connections.
    pub max: usize,
    /// Open connections.
    pub open: usize,
    /// Idle connections.
    pub idle: usize,
    /// Callers that wait for a connection.
    pub waiting: usize,
    /// The number of uses of connections since the database was opened.
    pub uses: u64,
}

/// An open database.
#[derive(Clone)]
pub struct Database(Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    Sqlite(sqlite::stores::Store),
    Postgres(postgres::stores::Store),
}

/// Opens a database: `sqlite://relative/path.db`, `sqlite:///absolute/path.db` or
/// `postgres://user:password@host/name`. A missing SQLite file is created; only this user may read
/// it.
pub async fn connect(url: &str) -> Result<Database, ConnectError> {
    let database = if let Some(path) = url.strip_prefix("sqlite://") {
        // SQLite gives its journals the mode of the file. When this fails, opening it does too, and
        // says why.
        create_private(std::path::Path::new(path)).ok();
        Database(Kind::Sqlite(sqlite::stores::Store::new(sqlite::pool(path)?)))
    } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        Database(Kind::Postgres(postgres::stores::Store::new(postgres::pool(url)?)))
    } else {
        return Err(ConnectError::UnknownScheme);
    };
    database.ping().await.map_err(ConnectError::Connection)?;
    Ok(database)
}

impl Database {
    pub(crate) const fn kind(&self) -> &Kind {
        &self.0
    }

    pub(crate) const fn troubles(&self) -> &Troubles {
        match &self.0 {
            Kind::Sqlite(store) => store.troubles(),
            Kind::Postgres(store) => store.troubles(),
        }
    }

    /// Every store port on this database.
    pub fn stores(&self) -> Stores {
        match &self.0 {
            Kind::Sqlite(store) => store.all(),
            Kind::Postgres(store) => store.all(),
        }
    }

    /// Whether it is embedded: a file for one server.
    pub const fn is_embedded(&self) -> bool {
        matches!(self.0, Kind::Sqlite(_))
    }

    /// The state of the connection pool.
    pub fn pool(&self) -> PoolState {
        let (status, uses) = match &self.0 {
            Kind::Sqlite(store) => (store.pool_status(), store.uses()),
            Kind::Postgres(store) => (store.pool_status(), store.uses()),
        };
        PoolState {
            max: status.max_size,
            open: status.size,
            idle: status.available,
            waiting: status.waiting,
            uses,
        }
    }

    /// Checks that the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match &self.0 {
            Kind::Sqlite(store) => {
                let mut conn = store.connection(Reach::ALL).await?;
                conn.batch_execute("SELECT 1").await.map_err(DbError::from)?;
            }
            Kind::Postgres(store) => {
                let mut conn = store.connection(Reach::ALL).await?;
                conn.batch_execute("SELECT 1").await.map_err(DbError::from)?;
            }
        }
        Ok(())
    }

    /// The applied and pending migrations.
    pub async fn migration_status(&self) -> Result<MigrationStatus, ConnectError> {
        let known = match &self.0 {
            Kind::Sqlite(_) => versions::<diesel::sqlite::Sqlite>(&SQLITE)?,
            Kind::Postgres(_) => versions::<diesel::pg::Pg>(&POSTGRES)?,
        };
        let applied = self.applied().await?;
        if let Some(newer) = applied.iter().find(|version| !known.contains(version)) {
            return Err(ConnectError::NewerSchema(newer.clone()));
        }
        let pending = known.into_iter().filter(|version| !applied.contains(version)).collect();
        Ok(MigrationStatus { applied, pending })
    }

    /// The applied versions; none before the first migration.
    async fn applied(&self) -> Result<Vec<String>, ConnectError> {
        diesel::table! {
            __diesel_schema_migrations (version) { version -> Text, run_on -> Timestamp, }
        }
        use __diesel_schema_migrations::dsl::{__diesel_schema_migrations as table, version};
        // Check the connection first, so that a failing database does not appear to lack the table.
        macro_rules! versions {
            ($store:expr, $is_there:literal) => {{
                let mut conn = $store.connection(Reach::ALL).await?;
                let is_there = diesel::select(sql::<Bool>($is_there));
                if !is_there.get_result(&mut conn).await.map_err(DbError::from)? {
                    return Ok(Vec::new());
                }
                table.select(version).order(version).load(&mut conn).await.map_err(DbError::from)?
            }};
        }
        Ok(match &self.0 {
            Kind::Sqlite(store) => versions!(
                store,
                "EXISTS (SELECT 1 FROM sqlite_master WHERE name = '__diesel_schema_migrations')"
            ),
            Kind::Postgres(store) => {
                versions!(store, "to_regclass('__diesel_schema_migrations') IS NOT NULL")
            }
        })
    }

    /// Applies the pending migrations and returns their versions. Of several servers that start at
    /// the same time, one migrates and the others wait.
    pub async fn migrate(&self) -> Result<Vec<String>, ConnectError> {
        let pending = self.migration_status().await?.pending;
        if pending.is_empty() {
            return Ok(pending);
        }
        let words = |error: Box<dyn std::error::Error + Send + Sync>| {
            ConnectError::Migration(error.to_string())
        };
        match &self.0 {
            Kind::Sqlite(store) => {
                let mut left = pending.len();
                loop {
                    let conn = store.connection(Reach::ALL).await?;
                    let done = apart(move || {
                        let mut harness = AsyncMigrationHarness::new(conn);
                        harness.run_pending_migrations(SQLITE).map(drop)
                    });
                    let Err(error) = done.await? else { break };
                    // Each migration is a transaction. One that another process has just applied
                    // fails on its first statement, and then fewer are pending.
                    match self.migration_status().await?.pending.len() {
                        0 => break,
                        fewer if fewer < left => left = fewer,
                        _ => return Err(words(error)),
                    }
                }
            }
            Kind::Postgres(store) => {
                let mut conn = store.connection(Reach::ALL).await?;
                conn.batch_execute(postgres::FOR_MIGRATIONS).await.map_err(DbError::from)?;
                let lock = format!("SELECT pg_advisory_lock({MIGRATION_LOCK})");
                conn.batch_execute(&lock).await.map_err(DbError::from)?;
                let (mut conn, done) = apart(move || {
                    let mut harness = AsyncMigrationHarness::new(conn);
                    let done = harness.run_pending_migrations(POSTGRES).map(drop);
                    (harness.into_inner(), done)
                })
                .await?;
                let unlock = format!("SELECT pg_advisory_unlock({MIGRATION_LOCK})");
                conn.batch_execute(&unlock).await.map_err(DbError::from)?;
                // Its timeouts are longer than those of other connections.
                conn.discard();
                done.map_err(words)?;
            }
        }
        Ok(pending)
    }
}

/// Runs migrations, which block, in a separate task, so that the caller's task keeps receiving its
/// wake-ups.
async fn apart<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ConnectError> {
    let task = tokio::spawn(async move { tokio::task::block_in_place(job) });
    task.await.map_err(|error| ConnectError::Migration(error.to_string()))
}

fn versions<B: diesel::backend::Backend>(
    source: &EmbeddedMigrations,
) -> Result<Vec<String>, ConnectError>
where
    EmbeddedMigrations: MigrationSource<B>,
{
    let migrations: Vec<Box<dyn Migration<B>>> = MigrationSource::<B>::migrations(source)
        .map_err(|error| ConnectError::Migration(error.to_string()))?;
    let mut versions: Vec<String> = migrations
        .iter()
        .map(|it| it.name().version())
        .map(|version: MigrationVersion<'_>| version.to_string())
        .collect();
    versions.sort();
    Ok(versions)
}
