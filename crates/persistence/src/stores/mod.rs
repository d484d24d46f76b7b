//! The stores. This folder is one source that is compiled twice, once per database: `super` is
//! `sqlite` or `postgres` and defines the connection type and the differences.

mod accounts;
mod agenda;
mod announcement_store;
mod audit_log;
mod bulk;
mod check_log;
mod event_log;
mod flaky;
mod history_store;
mod idempotency_store;
mod inbound_delivery_store;
mod job_store;
mod lent;
mod outbox;
mod pooled;
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
use std::sync::atomic::{AtomicU64, Ordering};

use diesel_async::TransactionManager;
use futures_util::future::BoxFuture;
use signalbox_domain::ports::{
    AccountStores, FlakyStores, HostStores, QueueStores, RuntimeStores, Stores, WebhookStores,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::{Conn, WRITERS, begin, begin_snapshot, transact};
use crate::error::DbError;
use crate::reach::Reach;
use crate::statement::Statement;
use crate::trouble::Troubles;

pub(crate) use lent::Lent;
pub(crate) use pooled::{Connections, Pool};

/// All stores of one database.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
    /// Transactions run on this runtime, independently of their callers' runtimes.
    runtime: Handle,
    /// Permits of writing transactions, so that some connections are always left for readers.
    turns: Arc<Semaphore>,
    /// The trouble that recent writes met.
    troubles: Troubles,
    /// The number of uses of connections.
    uses: Arc<AtomicU64>,
    /// The single permit of the health check's write.
    probes: Arc<Semaphore>,
}

type Manager = <Conn as diesel_async::AsyncConnection>::TransactionManager;
type Job<T> = Box<dyn for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T, DbError>> + Send>;

impl Store {
    /// Creates the stores on a pool. Transactions run on the current runtime.
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pool,
            runtime: Handle::current(),
            turns: Arc::new(Semaphore::new(WRITERS)),
            troubles: Troubles::default(),
            uses: Arc::default(),
            probes: Arc::new(Semaphore::new(1)),
        }
    }

    pub(crate) fn all(&self) -> Stores {
        let store = Arc::new(self.clone());
        Stores {
            queue: QueueStores {
                queues: store.clone(),
                outbox: store.clone(),
                reads: store.clone(),
                history: store.clone(),
                announcements: store.clone(),
                check_log: store.clone(),
            },
            flaky: FlakyStores {
                tests: store.clone(),
                reads: store.clone(),
                trend: store.clone(),
                uploads: store.clone(),
            },
            webhook: WebhookStores { endpoints: store.clone(), event_log: store.clone() },
            account: AccountStores {
                orgs: store.clone(),
                repos: store.clone(),
                tokens: store.clone(),
                sessions: store.clone(),
                idempotency: store.clone(),
                audit: store.clone(),
            },
            host: HostStores { pull_requests: store.clone(), inbound_deliveries: store.clone() },
            runtime: RuntimeStores { agenda: store.clone(), jobs: store.clone(), retention: store },
        }
    }

    /// The state of the connection pool.
    pub(crate) fn pool_status(&self) -> deadpool::Status {
        self.pool.status()
    }

    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// The trouble that recent writes met.
    pub(crate) const fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    pub(crate) fn probes(&self) -> Arc<Semaphore> {
        self.probes.clone()
    }

    /// Takes a connection from the pool, which sees these rows. The caller may be cancelled during a
    /// statement.
    pub(crate) async fn connection(&self, reach: impl Into<Reach>) -> Result<Lent, DbError> {
        let reach = reach.into();
        self.uses.fetch_add(1, Ordering::Relaxed);
        // Pool errors may contain the URL with its password: only the database's own message is
        // passed on.
        let lent = self.pool.get().await.map_err(|error| match error {
            deadpool::managed::PoolError::Timeout(_) => {
                DbError::Connection("all connections are in use".to_owned())
            }
            deadpool::managed::PoolError::Backend(
                diesel_async::pooled_connection::PoolError::ConnectionError(error),
            ) => DbError::refused(error),
            deadpool::managed::PoolError::Backend(_) => {
                DbError::Connection("the database does not accept connections".to_owned())
            }
            _ => DbError::Connection("the pool is closed".to_owned()),
        })?;
        let mut lent = Lent::new(lent, self.runtime.clone());
        if let Err(error) = lent.restrict(reach).await {
            lent.discard();
            return Err(error);
        }
        Ok(lent)
    }

    /// Runs a job in a writing transaction, in a task of its own, so that a cancelled caller leaves
    /// no open transaction.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        reach: impl Into<Reach>,
        job: Job<T>,
    ) -> Result<T, DbError> {
        let (store, reach) = (self.clone(), reach.into());
        self.in_turn(async move { store.transaction(true, reach, job).await }).await
    }

    /// Executes statements as [`transact`] does, in a task of its own, as [`Store::write`].
    async fn write_if(
        &self,
        reach: impl Into<Reach>,
        first: Statement,
        others: Vec<Statement>,
    ) -> Result<(), DbError> {
        let (store, reach) = (self.clone(), reach.into());
        let done = async move {
            let mut lent = store.connection(reach).await?;
            transact(&mut lent, first, others).await.map_err(|Ended { error, usable }| {
                if !usable {
                    lent.discard();
                }
                error
            })
        };
        self.in_turn(done).await
    }

    /// Writes when it is this writer's turn.
    async fn in_turn<T: Send + 'static>(
        &self,
        writing: impl Future<Output = Result<T, DbError>> + Send + 'static,
    ) -> Result<T, DbError> {
        let turn = tokio::time::timeout(crate::PATIENCE, self.turns.clone().acquire_owned());
        let store = self.clone();
        self.apart(async move {
            let waited =
                || DbError::Connection("too many transactions are waiting to write".to_owned());
            // The semaphore is never closed.
            let _turn = turn.await.map_err(|_| waited())?.map_err(|_| waited())?;
            let done = writing.await;
            if let Err(error) = &done {
                store.troubles.note(error);
            }
            done
        })
        .await
    }

    /// Runs a job that reads several tables in one snapshot.
    async fn snapshot<T: Send + 'static>(
        &self,
        reach: impl Into<Reach>,
        job: Job<T>,
    ) -> Result<T, DbError> {
        let (store, reach) = (self.clone(), reach.into());
        self.apart(async move { store.transaction(false, reach, job).await }).await
    }

    async fn apart<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, DbError>> + Send + 'static,
    ) -> Result<T, DbError> {
        self.runtime.spawn(work).await.map_err(|error| DbError::Stopped(Box::new(error)))?
    }

    async fn transaction<T: Send + 'static>(
        &self,
        write: bool,
        reach: Reach,
        job: Job<T>,
    ) -> Result<T, DbError> {
        let mut lent = self.connection(reach).await?;
        let conn: &mut Conn = &mut lent;
        let done = async {
            if write {
                begin(conn).await?;
            } else {
                begin_snapshot(conn).await?;
            }
            match job(conn).await {
                // After a failed commit it is unknown whether the transaction is open.
                Ok(value) => match Manager::commit_transaction(conn).await {
                    Ok(()) => Ok(value),
                    Err(error) => Err(Ended { error: error.into(), usable: false }),
                },
                Err(error) => {
                    let rolled_back = Manager::rollback_transaction(conn).await.is_ok();
                    Err(Ended::after(error, rolled_back))
                }
            }
        };
        done.await.map_err(|Ended { error, usable }| {
            if !usable {
                lent.discard();
            }
            error
        })
    }
}

/// A failed transaction.
pub(crate) struct Ended {
    pub(crate) error: DbError,
    /// Whether its connection can be used again.
    pub(crate) usable: bool,
}

impl Ended {
    /// It failed with this error, and was rolled back if `rolled_back`.
    pub(crate) fn after(error: DbError, rolled_back: bool) -> Self {
        let usable = rolled_back && !error.ends_connection();
        Self { error, usable }
    }
}

impl From<DbError> for Ended {
    /// The transaction could not begin.
    fn from(error: DbError) -> Self {
        Self { error, usable: false }
    }
}
