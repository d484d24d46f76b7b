//! The queries of the floors: the same library and settings as the product, and only
//! the statements that the work needs.

use diesel::deserialize::FromSql;
use diesel::pg::{Pg, PgValue};
use diesel::prelude::*;
use diesel::sql_types::Jsonb;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{
    AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection, TransactionManager,
};
use futures_util::FutureExt;
use uuid::Uuid;

use crate::failure::{During, Failure};

diesel::table! {
    bench_rows (id) { id -> BigInt, document -> Text, }
}
diesel::table! {
    bench_heads (id) { id -> BigInt, version -> BigInt, }
}
/// The product's tables, as one of the databases has them.
macro_rules! product_tables {
    ($module:ident: $id:ident, $document:ident) => {
        mod $module {
            diesel::table! {
                test_cases (repo_id, id) {
                    repo_id -> $id, id -> $id, org_id -> $id, status -> Text,
                    document -> $document,
                }
            }
            diesel::table! {
                queues (id) {
                    id -> $id, repo_id -> $id, branch -> Text, version -> BigInt,
                    document -> $document,
                }
            }
        }
    };
}

product_tables!(on_sqlite: Binary, Text);
product_tables!(on_postgres: Uuid, Jsonb);

/// A document that is read and not looked into.
#[derive(Debug, diesel::deserialize::FromSqlRow)]
struct Document;

impl FromSql<Jsonb, Pg> for Document {
    fn from_sql(value: PgValue<'_>) -> diesel::deserialize::Result<Self> {
        drop(value.as_bytes().to_vec());
        Ok(Self)
    }
}

/// A whole number.
#[derive(Debug, QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    number: i64,
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

const TABLES: &str = "CREATE TABLE bench_rows (id BIGINT PRIMARY KEY, document TEXT NOT NULL); \
    CREATE TABLE bench_heads (id BIGINT PRIMARY KEY, version BIGINT NOT NULL); \
    INSERT INTO bench_heads (id, version) VALUES (1, 0);";
const SQLITE_SET_UP: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
    PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4000;";

/// Connections for the floors.
#[derive(Clone)]
pub(crate) enum FloorStore {
    /// One connection: writers take turns before they ask the database, as the product's do.
    Sqlite(Pool<Sqlite>),
    /// As many as the product has.
    Postgres(Pool<AsyncPgConnection>),
}

/// Runs a body on a connection of either kind.
macro_rules! with {
    ($store:expr, $conn:ident => $body:expr) => {
        match $store {
            Self::Sqlite(pool) => {
                let mut held = pool.get().await.during("a connection")?;
                let $conn: &mut Sqlite = &mut held;
                $body
            }
            Self::Postgres(pool) => {
                let mut held = pool.get().await.during("a connection")?;
                let $conn: &mut AsyncPgConnection = &mut held;
                $body
            }
        }
    };
}

impl FloorStore {
    /// Opens the database of that URL and makes the floors' own tables.
    pub(crate) async fn open(url: &str) -> Result<Self, Failure> {
        let store = if let Some(path) = url.strip_prefix("sqlite://") {
            let mut config = ManagerConfig::default();
            config.recycling_method = RecyclingMethod::Fast;
            config.custom_setup = Box::new(|path: &str| {
                let path = path.to_owned();
                async move {
                    let mut conn = Sqlite::establish(&path).await?;
                    let set_up = conn.batch_execute(SQLITE_SET_UP).await;
                    set_up.map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
                    Ok(conn)
                }
                .boxed()
            });
            let manager = AsyncDieselConnectionManager::new_with_config(path, config);
            Self::Sqlite(Pool::builder(manager).max_size(1).build().during("a pool")?)
        } else {
            let mut config = ManagerConfig::default();
            config.recycling_method = RecyclingMethod::Fast;
            let manager = AsyncDieselConnectionManager::new_with_config(url, config);
            Self::Postgres(Pool::builder(manager).max_size(16).build().during("a pool")?)
        };
        store.run_sql(TABLES).await?;
        Ok(store)
    }

    /// Runs statements as they are.
    pub(crate) async fn run_sql(&self, sql: &str) -> Result<(), Failure> {
        with!(self, conn => conn.batch_execute(sql).await.during("a statement"))
    }

    /// The value of a query for one whole number, as `number`.
    pub(crate) async fn number(&self, sql: &str) -> Result<f64, Failure> {
        let Number { number } =
            with!(self, conn => diesel::sql_query(sql).get_result(conn).await.during("a query")?);
        // Sizes are below 2^53, so the text has a value that is exact.
        number.to_string().parse().during("a number")
    }

    /// One INSERT and one UPDATE in a transaction.
    pub(crate) async fn insert_and_update(&self, id: i64, document: &str) -> Result<(), Failure> {
        with!(self, conn => {
            type Transactions<C> = <C as AsyncConnection>::TransactionManager;
            async fn begin<C: AsyncConnection>(conn: &mut C) -> QueryResult<()> {
                Transactions::<C>::begin_transaction(conn).await
            }
            async fn commit<C: AsyncConnection>(conn: &mut C) -> QueryResult<()> {
                Transactions::<C>::commit_transaction(conn).await
            }
            begin(conn).await.during("BEGIN")?;
            let row = (bench_rows::id.eq(id), bench_rows::document.eq(document));
            let inserted = diesel::insert_into(bench_rows::table).values(row).execute(conn).await;
            inserted.during("INSERT")?;
            diesel::update(bench_heads::table.filter(bench_heads::id.eq(1)))
                .set(bench_heads::version.eq(id))
                .execute(conn)
                .await
                .during("UPDATE")?;
            commit(conn).await.during("COMMIT")
        })
    }

    /// Reads documents of a repository's flaky tests, in the order of their ids; returns how many.
    pub(crate) async fn flaky_tests(
        &self,
        (repo, org): (&str, &str),
        limit: i64,
    ) -> Result<usize, Failure> {
        macro_rules! query {
            ($tables:ident, $repo:expr, $org:expr, $after:expr) => {{
                use $tables::test_cases;
                test_cases::table
                    .filter(test_cases::repo_id.eq($repo))
                    .filter(test_cases::org_id.eq($org))
                    .filter(test_cases::status.eq("flaky"))
                    .filter(test_cases::id.gt($after))
                    .order(test_cases::id)
                    .limit(limit)
                    .select((test_cases::id, test_cases::document))
            }};
        }
        Ok(match self {
            Self::Sqlite(pool) => {
                let mut conn = pool.get().await.during("a connection")?;
                let [repo, org, nil] = [id(repo)?, id(org)?, Uuid::nil()].map(Vec::from);
                let query = query!(on_sqlite, repo, org, nil);
                let rows: Vec<(Vec<u8>, String)> = query.load(&mut conn).await.during("SELECT")?;
                rows.len()
            }
            Self::Postgres(pool) => {
                let mut conn = pool.get().await.during("a connection")?;
                let query = query!(on_postgres, id(repo)?, id(org)?, Uuid::nil());
                let rows: Vec<(Uuid, Document)> = query.load(&mut conn).await.during("SELECT")?;
                rows.len()
            }
        })
    }

    /// Reads the row of a repository's queue; returns its version.
    pub(crate) async fn queue_row(&self, repo: &str, branch: &str) -> Result<i64, Failure> {
        macro_rules! query {
            ($tables:ident, $repo:expr) => {{
                use $tables::queues;
                queues::table
                    .filter(queues::repo_id.eq($repo))
                    .filter(queues::branch.eq(branch))
                    .select((queues::version, queues::document))
            }};
        }
        Ok(match self {
            Self::Sqlite(pool) => {
                let mut conn = pool.get().await.during("a connection")?;
                let repo = Vec::from(id(repo)?);
                let row: (i64, String) =
                    query!(on_sqlite, repo).first(&mut conn).await.during("SELECT")?;
                row.0
            }
            Self::Postgres(pool) => {
                let mut conn = pool.get().await.during("a connection")?;
                let row: (i64, Document) =
                    query!(on_postgres, id(repo)?).first(&mut conn).await.during("SELECT")?;
                row.0
            }
        })
    }
}

fn id(text: &str) -> Result<Uuid, Failure> {
    text.parse().during("an id")
}
