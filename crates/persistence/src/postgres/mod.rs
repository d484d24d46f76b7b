//! PostgreSQL: any number of servers on one database. Pure Rust, no libpq.

use std::time::Duration;

use diesel::sql_types::{Integer, Text};
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, RunQueryDsl};
use signalbox_domain::ids::OrgId;

use crate::error::DbError;

mod partitions;

pub(crate) use partitions::{prepare_day, prune_runs};

#[path = "../stores/mod.rs"]
pub(crate) mod stores;

pub(crate) type Conn = AsyncPgConnection;

const CONNECTIONS: usize = 16;

pub(crate) fn pool(url: &str) -> Result<Pool<Conn>, DbError> {
    let mut config = ManagerConfig::default();
    // The driver knows when a connection has ended, so nothing is asked before each use.
    config.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::<Conn>::new_with_config(url, config);
    Pool::builder(manager)
        .max_size(CONNECTIONS)
        .wait_timeout(Some(Duration::from_secs(30)))
        .runtime(deadpool::Runtime::Tokio1)
        .build()
        .map_err(|error| DbError::Connection(error.to_string()))
}

pub(crate) async fn begin(conn: &mut Conn) -> Result<(), DbError> {
    Ok(AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN").await?)
}

pub(crate) async fn begin_snapshot(conn: &mut Conn) -> Result<(), DbError> {
    let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    Ok(AnsiTransactionManager::begin_transaction_sql(conn, sql).await?)
}

/// Rows for a lease: locked, and those that another server is leasing are passed over.
macro_rules! locked {
    ($query:expr) => {
        $query.for_update().skip_locked()
    };
}
pub(crate) use locked;

/// The class of the advisory locks of event logs; the organization is the rest of the key.
const LOG_LOCK: i32 = 0x6c6f_6721;

/// Waits until no other transaction has events of the organization that are not committed. A
/// position is given before the commit: without turns, one that is committed later could have a
/// position below one that a reader has passed.
pub(crate) async fn take_turn_in_log(conn: &mut Conn, org: OrgId) -> Result<(), DbError> {
    diesel::sql_query("SELECT pg_advisory_xact_lock($1, hashtext($2))")
        .bind::<Integer, _>(LOG_LOCK)
        .bind::<Text, _>(org.to_string())
        .execute(conn)
        .await?;
    Ok(())
}

/// Rows of a JSON array, as a query with those columns. The array is parameter 1.
pub(crate) fn rows_of_json(columns: &[(&str, &str)]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let kinds: Vec<String> = columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    let (names, kinds) = (names.join(", "), kinds.join(", "));
    format!("SELECT {names} FROM json_to_recordset($1::json) AS given ({kinds})")
}
