//! The stores. This folder is one source that is compiled twice, once for each database: `super`
//! is `sqlite` or `postgres`, and gives the connection type and what the two do differently.

mod accounts;
mod audit_log;
mod bulk;
mod check_log;
mod commit;
mod event_log;
mod flaky;
mod heard_store;
mod history_store;
mod outbox;
mod pull_request_store;
mod queue_store;
mod read_store;
mod repo_store;
mod retention;
mod rows;
mod server_values;
mod sessions;
mod upload_leases;
mod upload_store;
mod webhooks;

use std::sync::Arc;

use diesel_async::TransactionManager;
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use futures_util::future::BoxFuture;
use signalbox_domain::ports::Stores;

use super::{Conn, begin, begin_snapshot};
use crate::error::DbError;

/// All stores of one database.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool<Conn>,
}

type Manager = <Conn as diesel_async::AsyncConnection>::TransactionManager;
type Job<T> = Box<dyn for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T, DbError>> + Send>;

impl Store {
    pub(crate) const fn new(pool: Pool<Conn>) -> Self {
        Self { pool }
    }

    pub(crate) fn all(&self) -> Stores {
        let store = Arc::new(self.clone());
        Stores {
            queues: store.clone(),
            outbox: store.clone(),
            reads: store.clone(),
            history: store.clone(),
            orgs: store.clone(),
            tokens: store.clone(),
            sessions: store.clone(),
            repos: store.clone(),
            pull_requests: store.clone(),
            check_log: store.clone(),
            uploads: store.clone(),
            flaky: store.clone(),
            heard: store.clone(),
            flaky_reads: store.clone(),
            event_log: store.clone(),
            audit: store.clone(),
            retention: store.clone(),
            webhooks: store,
        }
    }

    /// How many connections there are, and how many of them are free.
    pub(crate) fn pool_status(&self) -> deadpool::Status {
        self.pool.status()
    }

    pub(crate) async fn connection(&self) -> Result<Object<Conn>, DbError> {
        // Pool errors may quote the URL with its password: only their kind is told.
        self.pool.get().await.map_err(|error| {
            DbError::Connection(match error {
                deadpool::managed::PoolError::Timeout(_) => "all connections are in use".to_owned(),
                deadpool::managed::PoolError::Backend(error) => match error {
                    diesel_async::pooled_connection::PoolError::ConnectionError(
                        diesel::ConnectionError::BadConnection(words),
                    ) => words,
                    _ => "the database does not accept connections".to_owned(),
                },
                _ => "the pool is closed".to_owned(),
            })
        })
    }

    /// Does a job in a transaction that writes, in a task of its own: a caller that goes away
    /// leaves no transaction open.
    async fn write<T: Send + 'static>(&self, job: Job<T>) -> Result<T, DbError> {
        self.transaction(true, job).await
    }

    /// Does a job that reads several tables at one point in time.
    async fn snapshot<T: Send + 'static>(&self, job: Job<T>) -> Result<T, DbError> {
        self.transaction(false, job).await
    }

    async fn transaction<T: Send + 'static>(&self, write: bool, job: Job<T>) -> Result<T, DbError> {
        let store = self.clone();
        let task = tokio::spawn(async move {
            let mut conn = store.connection().await?;
            let conn: &mut Conn = &mut conn;
            if write {
                begin(conn).await?;
            } else {
                begin_snapshot(conn).await?;
            }
            match job(conn).await {
                Ok(value) => {
                    Manager::commit_transaction(conn).await?;
                    Ok(value)
                }
                Err(error) => {
                    Manager::rollback_transaction(conn).await?;
                    Err(error)
                }
            }
        });
        task.await.map_err(|error| DbError::Stopped(Box::new(error)))?
    }
}
