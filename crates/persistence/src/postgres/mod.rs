//! PostgreSQL: any number of servers on one database. Pure Rust, without libpq.

use std::time::Duration;

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::BigInt;
use diesel::{ConnectionError, ConnectionResult, QueryResult};
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures_util::FutureExt;
use signalbox_domain::ids::OrgId;
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio_postgres::{Config, NoTls};

use crate::columns::{Column, Kind};
use crate::error::DbError;
use crate::reach::Reach;
use crate::statement::Statement;
use crate::work::Work;

mod partitions;

pub(crate) use partitions::{RUNS_CAME_SINCE, prepare_day, prune_runs};

#[path = "../stores/mod.rs"]
pub(crate) mod stores;

use stores::{Connections, Ended, Pool};

pub(crate) type Conn = AsyncPgConnection;

const CONNECTIONS: usize = 16;
/// The most concurrent writing transactions of this process, so that some connections are always
/// left for readers.
pub(crate) const WRITERS: usize = 12;

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(5);
/// Keepalive: the idle time, the interval and the number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);
/// The time after which unacknowledged data ends a connection.
const RECEIPT: Duration = Duration::from_secs(15);

/// The session settings of a connection: timeouts of statements and locks, of idle transactions (so
/// that a frozen process or a lost machine does not keep its locks), and keepalives. A setting in
/// the URL, the role or the database takes precedence.
const SESSION: &str = "SELECT set_config(name, value, false) FROM (VALUES \
    ('statement_timeout', '30s'), ('lock_timeout', '10s'), \
    ('idle_in_transaction_session_timeout', '5s'), ('tcp_user_timeout', '15s'), \
    ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), \
    ('tcp_keepalives_count', '3')) AS ours (name, value) \
    JOIN pg_settings USING (name) \
    WHERE source NOT IN ('client', 'user', 'database', 'database user')";

/// A migration has no time limit, and waits for that of another server.
pub(crate) const FOR_MIGRATIONS: &str = "SET statement_timeout = 0; SET lock_timeout = '10min'";

pub(crate) fn pool(url: &str) -> Result<Pool, DbError> {
    let mut config = ManagerConfig::default();
    // The driver detects closed connections, so no query is needed before each use.
    config.recycling_method = RecyclingMethod::Fast;
    let runtime = Handle::current();
    // The driver's task must outlive the runtime of the caller that opened the connection.
    config.custom_setup = Box::new(move |url: &str| {
        let opened = runtime.spawn(open(url.to_owned()));
        async move {
            let ended = |error: JoinError| ConnectionError::BadConnection(error.to_string());
            opened.await.map_err(ended)?
        }
        .boxed()
    });
    let manager = AsyncDieselConnectionManager::<Conn>::new_with_config(url, config);
    Pool::builder(Connections(manager))
        .max_size(CONNECTIONS)
        .wait_timeout(Some(crate::PATIENCE))
        .runtime(deadpool::Runtime::Tokio1)
        .build()
        .map_err(|error| DbError::Connection(error.to_string()))
}

/// Opens a connection. Timeouts that the URL does not set have defaults, so that no call waits
/// forever.
async fn open(url: String) -> ConnectionResult<Conn> {
    let refused = |error: tokio_postgres::Error| {
        // The message of a server that refuses the connection.
        let said = error.as_db_error().map(|it| it.message().to_owned());
        ConnectionError::BadConnection(said.unwrap_or_else(|| error.to_string()))
    };
    let mut config: Config = url.parse().map_err(refused)?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(RECEIPT);
    }
    // The driver's default is two hours, as in the protocol.
    if config.get_keepalives_idle() >= Duration::from_hours(2) {
        config.keepalives_idle(KEEPALIVE.0);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE.1);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE.2);
    }
    if config.get_application_name().is_none() {
        config.application_name("signalbox");
    }
    let whole = async {
        let (client, connection) = config.connect(NoTls).await.map_err(refused)?;
        let mut conn = Conn::try_from_client_and_connection(client, connection).await?;
        let set_up = conn.batch_execute(SESSION).await;
        set_up.map_err(ConnectionError::CouldntSetupConfiguration)?;
        Ok(conn)
    };
    // The driver's timeout covers the network only; a frozen server still accepts connections.
    let late = || ConnectionError::BadConnection("the database does not answer".to_owned());
    tokio::time::timeout(2 * CONNECT, whole).await.unwrap_or_else(|_| Err(late()))
}

/// The driver sends and receives in a task of its own and drops replies to cancelled callers, so a
/// cancelled call leaves no pending statement to the next caller.
pub(crate) fn work(_: &Conn) -> Option<Work> {
    None
}

/// Lets a connection see the rows of one organization, as the policies of the tables say.
pub(crate) async fn restrict(conn: &mut Conn, reach: Reach) -> Result<(), DbError> {
    let org = reach.org().map(|org| org.to_string()).unwrap_or_default();
    Ok(conn.batch_execute(&format!("SET signalbox.org = '{org}'")).await?)
}

pub(crate) async fn begin(conn: &mut Conn) -> Result<(), DbError> {
    Ok(AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN").await?)
}

pub(crate) async fn begin_snapshot(conn: &mut Conn) -> Result<(), DbError> {
    let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    Ok(AnsiTransactionManager::begin_transaction_sql(conn, sql).await?)
}

/// Selects rows for a lease: locked, skipping rows that another server is leasing.
macro_rules! locked {
    ($query:expr) => {
        $query.for_update().skip_locked()
    };
}
pub(crate) use locked;

/// The first key of the advisory locks of event logs; the second is derived from the organization.
const LOG_LOCK: i32 = 0x6c6f_6721;

/// Waits until no other transaction has uncommitted events of the organization. Positions are
/// assigned before the commit: without this lock, an event that is committed later could have a
/// position below one that a reader has passed.
pub(crate) async fn take_turn_in_log(conn: &mut Conn, org: OrgId) -> Result<(), DbError> {
    let sql = format!("SELECT pg_advisory_xact_lock({LOG_LOCK}, hashtext($1))");
    Statement::new(&sql, org.to_string()).execute(conn).await?;
    Ok(())
}

/// A clause before an INSERT of [`transact`] that takes the turn in the log as
/// [`take_turn_in_log`] does, and the condition that makes the INSERT wait for it.
pub(crate) fn in_turn_in_log() -> (String, &'static str) {
    let lock = format!("pg_advisory_xact_lock({LOG_LOCK}, hashtext(org_id::text))");
    (format!("WITH turn AS MATERIALIZED (SELECT {lock} FROM done) "), "EXISTS (SELECT FROM turn)")
}

/// The condition of each INSERT of [`transact`].
pub(crate) const IF_DONE: &str = "EXISTS (SELECT FROM done)";

/// Writes atomically if the first statement, an UPDATE from rows `new` with the organization, changes
/// exactly one row: [`DbError::Conflict`] otherwise. It is a single statement, so it takes one round
/// trip: each INSERT is conditional on the UPDATE.
pub(crate) async fn transact(
    conn: &mut Conn,
    first: Statement,
    others: Vec<Statement>,
) -> Result<(), Ended> {
    let whole = Together { first, others };
    let changed = whole.get_result::<i64>(conn).await.map_err(DbError::from);
    match changed {
        Ok(1) => Ok(()),
        Ok(_) => Err(Ended::after(DbError::Conflict, true)),
        Err(error) => Err(Ended::after(error, true)),
    }
}

/// One statement of several.
struct Together {
    first: Statement,
    others: Vec<Statement>,
}

impl QueryId for Together {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Together {
    type SqlType = BigInt;
}

impl QueryFragment<Pg> for Together {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH done AS (");
        self.first.walk_ast(out.reborrow())?;
        out.push_sql(" RETURNING new.org_id)");
        for (number, statement) in self.others.iter().enumerate() {
            out.push_sql(&format!(", other_{number} AS ("));
            statement.walk_ast(out.reborrow())?;
            out.push_sql(")");
        }
        out.push_sql(" SELECT count(*) FROM done");
        Ok(())
    }
}

/// A query for the rows of a JSON array with these columns. The array is parameter 1.
pub(crate) fn rows_of_json(columns: &[Column]) -> String {
    let (mut read, mut given) = (Vec::new(), Vec::new());
    for Column { name, kind } in columns {
        let (sql_type, value) = match kind {
            Kind::Id => ("UUID", (*name).to_owned()),
            // Whole seconds and microseconds apart, so that no precision is lost in a
            // floating-point number.
            Kind::Moment => (
                "BIGINT",
                format!(
                    "CASE WHEN {name} = {} THEN TIMESTAMPTZ 'infinity' ELSE \
                     to_timestamp({name} / 1000000) + {name} % 1000000 * INTERVAL '1 microsecond' \
                     END",
                    i64::MAX
                ),
            ),
            Kind::Document => ("TEXT", format!("{name}::jsonb")),
            Kind::Text => ("TEXT", (*name).to_owned()),
            Kind::BigInt => ("BIGINT", (*name).to_owned()),
            Kind::Bool => ("BOOLEAN", (*name).to_owned()),
        };
        read.push(format!("{value} AS {name}"));
        given.push(format!("{name} {sql_type}"));
    }
    let (read, given) = (read.join(", "), given.join(", "));
    format!("SELECT {read} FROM json_to_recordset($1::json) AS given ({given})")
}
