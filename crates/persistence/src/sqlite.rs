//! SQLite: embedded, one file, WAL. Writers take their turn with `BEGIN IMMEDIATE` and wait for
//! each other; other processes may have the file open.

use std::time::Duration;

use diesel::SqliteConnection;
use diesel::connection::AnsiTransactionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, SimpleAsyncConnection};
use futures_util::FutureExt;
use signalbox_domain::ids::OrgId;

use crate::error::DbError;

#[path = "stores/mod.rs"]
pub(crate) mod stores;

pub(crate) type Conn = SyncConnectionWrapper<SqliteConnection>;

/// Connections; more would only wait for each other.
const CONNECTIONS: usize = 4;

/// `synchronous = FULL`: what was answered must survive a power cut.
const SET_UP: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
    PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;";

pub(crate) fn pool(path: &str) -> Result<Pool<Conn>, DbError> {
    let mut config = ManagerConfig::default();
    // A file does not hang up: nothing is asked before each use of a connection.
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(|path: &str| {
        let path = path.to_owned();
        async move {
            let mut conn = Conn::establish(&path).await?;
            let set_up = conn.batch_execute(SET_UP).await;
            set_up.map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
            Ok(conn)
        }
        .boxed()
    });
    let manager = AsyncDieselConnectionManager::<Conn>::new_with_config(path, config);
    Pool::builder(manager)
        .max_size(CONNECTIONS)
        .wait_timeout(Some(Duration::from_secs(30)))
        .runtime(deadpool::Runtime::Tokio1)
        .build()
        .map_err(|error| DbError::Connection(error.to_string()))
}

pub(crate) async fn begin(conn: &mut Conn) -> Result<(), DbError> {
    begin_with(conn, "BEGIN IMMEDIATE").await
}

pub(crate) async fn begin_snapshot(conn: &mut Conn) -> Result<(), DbError> {
    begin_with(conn, "BEGIN").await
}

async fn begin_with(conn: &mut Conn, sql: &'static str) -> Result<(), DbError> {
    let begun =
        conn.spawn_blocking(|conn| AnsiTransactionManager::begin_transaction_sql(conn, sql));
    Ok(begun.await?)
}

/// Rows for a lease: the transaction is the only writer, nothing needs a lock of its own.
macro_rules! locked {
    ($query:expr) => {
        $query
    };
}
pub(crate) use locked;

/// Rows of a JSON array, as a query with those columns. The array is parameter 1.
pub(crate) fn rows_of_json(columns: &[(&str, &str)]) -> String {
    let read =
        |(name, kind): &(&str, &str)| format!("CAST(value ->> '{name}' AS {kind}) AS {name}");
    let columns: Vec<String> = columns.iter().map(read).collect();
    format!("SELECT {} FROM json_each($1)", columns.join(", "))
}

/// Writers take turns anyway.
pub(crate) async fn take_turn_in_log(_: &mut Conn, _: OrgId) -> Result<(), DbError> {
    Ok(())
}

/// Results need no room of their own.
pub(crate) async fn prepare_day(_: &mut Conn, _: i64) -> Result<(), DbError> {
    Ok(())
}

/// Deletes some results that came on days before one.
pub(crate) async fn prune_runs(conn: &mut Conn, before: i64, limit: i64) -> Result<u64, DbError> {
    use diesel::sql_types::BigInt;
    use diesel_async::RunQueryDsl;
    let sql = "DELETE FROM test_runs WHERE rowid IN \
        (SELECT rowid FROM test_runs WHERE day < $1 ORDER BY day LIMIT $2)";
    let delete = diesel::sql_query(sql).bind::<BigInt, _>(before).bind::<BigInt, _>(limit);
    Ok(u64::try_from(delete.execute(conn).await?).unwrap_or(0))
}
