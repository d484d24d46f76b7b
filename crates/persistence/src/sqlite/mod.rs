//! SQLite: embedded, one file in WAL mode. Writers are serialized by `BEGIN IMMEDIATE`; other
//! processes may open the file, too.

use diesel::SqliteConnection;
use diesel::connection::{AnsiTransactionManager, TransactionManager};
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use futures_util::FutureExt;
use signalbox_domain::ids::OrgId;
use signalbox_domain::time::Timestamp;
use tokio::runtime::Handle;

use crate::columns::{Column, Kind};
use crate::error::DbError;
use crate::reach::Reach;
use crate::sql_types::Moment;
use crate::statement::Statement;
use crate::work::Work;

mod conn;

#[path = "../stores/mod.rs"]
pub(crate) mod stores;

pub(crate) use conn::Conn;

use stores::{Connections, Ended, Pool};

/// The number of connections; more would only wait for each other.
const CONNECTIONS: usize = 4;
/// The most concurrent writing transactions of this process. Writers queue here, in order, and not
/// inside SQLite, where each would occupy a connection that readers could use.
pub(crate) const WRITERS: usize = 1;

/// `synchronous = FULL`: an acknowledged commit must survive a power failure. The log is copied into the
/// file at 16 MB (4,000 pages) rather than the default 4 MB: keys are random, so the commits of a burst often
/// rewrite the same pages before they are copied.
const SET_UP: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
    PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4000;";

pub(crate) fn pool(path: &str) -> Result<Pool, DbError> {
    let mut config = ManagerConfig::default();
    // A file does not disconnect, so no query is needed before each use of a connection.
    config.recycling_method = RecyclingMethod::Fast;
    let runtime = Handle::current();
    config.custom_setup =
        Box::new(move |path: &str| Conn::open(runtime.clone(), path.to_owned(), SET_UP).boxed());
    let manager = AsyncDieselConnectionManager::<Conn>::new_with_config(path, config);
    Pool::builder(Connections(manager))
        .max_size(CONNECTIONS)
        .wait_timeout(Some(crate::PATIENCE))
        .runtime(deadpool::Runtime::Tokio1)
        .build()
        .map_err(|error| DbError::Connection(error.to_string()))
}

/// What is under way on other threads.
#[expect(clippy::unnecessary_wraps, reason = "the driver of PostgreSQL has no running statements")]
pub(crate) fn work(conn: &Conn) -> Option<Work> {
    Some(conn.work().clone())
}

/// Here only the queries tell organizations apart.
pub(crate) async fn restrict(_: &mut Conn, _: Reach) -> Result<(), DbError> {
    Ok(())
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

/// Selects rows for a lease. The transaction is the only writer, so rows need no locks.
macro_rules! locked {
    ($query:expr) => {
        $query
    };
}
pub(crate) use locked;

/// A query for the rows of a JSON array with these columns. The array is parameter 1.
pub(crate) fn rows_of_json(columns: &[Column]) -> String {
    let read = |Column { name, kind }: &Column| {
        let sql_type = match kind {
            Kind::Id => return format!("unhex(value ->> '{name}', '-') AS {name}"),
            Kind::Document | Kind::Text => "TEXT",
            Kind::Moment | Kind::BigInt | Kind::Bool => "INTEGER",
        };
        format!("CAST(value ->> '{name}' AS {sql_type}) AS {name}")
    };
    let columns: Vec<String> = columns.iter().map(read).collect();
    format!("SELECT {} FROM jsonb_each($1)", columns.join(", "))
}

/// Does nothing: SQLite serializes writers.
pub(crate) async fn take_turn_in_log(_: &mut Conn, _: OrgId) -> Result<(), DbError> {
    Ok(())
}

/// The clause before an INSERT of [`transact`] into the log, and its condition: SQLite serializes
/// writers.
pub(crate) const fn in_turn_in_log() -> (String, &'static str) {
    (String::new(), IF_DONE)
}

/// The condition of each INSERT of [`transact`], which is executed only after the first statement.
pub(crate) const IF_DONE: &str = "TRUE";

/// Executes statements in one transaction if the first one, an UPDATE, changes exactly one row:
/// [`DbError::Conflict`] otherwise. All of it is one piece of work for another thread.
pub(crate) async fn transact(
    conn: &mut Conn,
    first: Statement,
    others: Vec<Statement>,
) -> Result<(), Ended> {
    let work = conn.spawn_blocking(move |conn| Ok(transact_now(conn, first, others)));
    work.await.unwrap_or_else(|error| Err(Ended::after(DbError::from(error), false)))
}

fn transact_now(
    conn: &mut SqliteConnection,
    first: Statement,
    others: Vec<Statement>,
) -> Result<(), Ended> {
    let failed = |error: diesel::result::Error| Ended::after(error.into(), false);
    AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN IMMEDIATE").map_err(failed)?;
    let mut execute =
        |statement| diesel::RunQueryDsl::execute(statement, conn).map_err(DbError::from);
    let done = execute(first).and_then(|changed| match changed {
        1 => Ok(()),
        _ => Err(DbError::Conflict),
    });
    let done = done
        .and_then(|()| others.into_iter().try_for_each(|statement| execute(statement).map(drop)));
    match done {
        // After a failed commit it is unknown whether the transaction is open.
        Ok(()) => AnsiTransactionManager::commit_transaction(conn).map_err(failed),
        Err(error) => {
            let rolled_back = AnsiTransactionManager::rollback_transaction(conn).is_ok();
            Err(Ended::after(error, rolled_back))
        }
    }
}

/// Does nothing: SQLite has no partitions.
pub(crate) async fn prepare_day(_: &mut Conn, _: Timestamp) -> Result<(), DbError> {
    Ok(())
}

/// The condition for runs that did not fail and came at a time or later, before and after the time. The
/// key of the table begins with their period, so the periods are found one by one.
pub(crate) const RUNS_CAME_SINCE: (&str, &str) = (
    "start IN (WITH RECURSIVE periods (start) AS (\
     SELECT min(start) FROM packed_runs WHERE start >= ",
    " UNION ALL \
     SELECT (SELECT min(later.start) FROM packed_runs AS later WHERE later.start > periods.start) \
     FROM periods WHERE periods.start IS NOT NULL) SELECT start FROM periods)",
);

/// Deletes some runs of days before `before`.
pub(crate) async fn prune_runs(
    conn: &mut Conn,
    before: Timestamp,
    limit: i64,
) -> Result<u64, DbError> {
    use diesel::sql_types::BigInt;
    use diesel_async::RunQueryDsl;
    let mut gone = 0;
    for (table, key, age) in
        [("test_runs", "rowid", "day"), ("packed_runs", "start, repo_id, test_id", "start")]
    {
        let sql = format!(
            "DELETE FROM {table} WHERE ({key}) IN \
             (SELECT {key} FROM {table} WHERE {age} < $1 ORDER BY {age} LIMIT $2)"
        );
        let delete = diesel::sql_query(sql).bind::<Moment, _>(before).bind::<BigInt, _>(limit);
        gone += u64::try_from(delete.execute(conn).await?).unwrap_or(0);
    }
    Ok(gone)
}
