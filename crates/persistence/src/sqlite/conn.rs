//! A connection to a SQLite file. Statements run on threads for blocking work, and run to
//! completion even if their caller is cancelled.

use std::error::Error;
use std::ops::{Deref, DerefMut};

use diesel::connection::SimpleConnection;
use diesel::{Connection, ConnectionError, ConnectionResult, SqliteConnection};
use diesel_async::pooled_connection::PoolableConnection;
use diesel_async::sync_connection_wrapper::{SpawnBlocking, SyncConnectionWrapper};
use diesel_async::{AsyncConnection, TransactionManager};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use crate::work::Work;

/// The runtime whose threads run statements.
pub(crate) struct Threads {
    runtime: Handle,
    work: Work,
}

impl SpawnBlocking for Threads {
    /// If the future is dropped, the statement still runs to completion.
    fn spawn_blocking<'a, R: Send + 'static>(
        &mut self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> BoxFuture<'a, Result<R, Box<dyn Error + Send + Sync + 'static>>> {
        let under_way = self.work.begin();
        let task = self.runtime.spawn_blocking(move || {
            // Dropped last, after the statement has released the connection.
            let _under_way = under_way;
            task()
        });
        async move { task.await.map_err(Into::into) }.boxed()
    }

    fn get_runtime() -> Self {
        Self { runtime: Handle::current(), work: Work::new() }
    }
}

type Inner = SyncConnectionWrapper<SqliteConnection, Threads>;

/// A connection.
pub(crate) struct Conn {
    inner: Inner,
    work: Work,
}

impl Conn {
    /// Opens a file on the threads of a runtime, and configures the connection.
    pub(crate) async fn open(
        runtime: Handle,
        path: String,
        set_up: &'static str,
    ) -> ConnectionResult<Self> {
        let opened = runtime.spawn_blocking(move || {
            let mut conn = SqliteConnection::establish(&path)?;
            let set_up = conn.batch_execute(set_up);
            set_up.map_err(ConnectionError::CouldntSetupConfiguration)?;
            ConnectionResult::Ok(conn)
        });
        let ended =
            |error: tokio::task::JoinError| ConnectionError::BadConnection(error.to_string());
        let conn = opened.await.map_err(ended)??;
        let work = Work::new();
        let threads = Threads { runtime, work: work.clone() };
        Ok(Self { inner: SyncConnectionWrapper::with_runtime(conn, threads), work })
    }

    /// The statements that run on other threads.
    pub(crate) const fn work(&self) -> &Work {
        &self.work
    }
}

impl Deref for Conn {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl PoolableConnection for Conn {
    /// The inner connection may only be accessed while no statement runs, and not after a panic.
    fn is_broken(&mut self) -> bool {
        !self.work.is_idle()
            || self.work.has_panicked()
            || <Self as AsyncConnection>::TransactionManager::is_broken_transaction_manager(self)
    }
}
