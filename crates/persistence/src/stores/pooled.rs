//! Connections in the pool: each knows which rows it sees.

use deadpool::managed::{Manager, Metrics, RecycleResult};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, PoolError};

use super::super::{Conn, restrict};
use crate::error::DbError;
use crate::reach::Reach;

/// The pool of a database.
pub(crate) type Pool = deadpool::managed::Pool<Connections>;

/// A connection, and which rows it sees; `None` while that is changed.
pub(crate) struct Pooled {
    pub(super) conn: Conn,
    reach: Option<Reach>,
}

/// Opens connections.
pub(crate) struct Connections(pub(crate) AsyncDieselConnectionManager<Conn>);

impl Pooled {
    /// Lets it see these rows and no others.
    pub(super) async fn restrict(&mut self, reach: Reach) -> Result<(), DbError> {
        if self.reach != Some(reach) {
            self.reach = None;
            restrict(&mut self.conn, reach).await?;
            self.reach = Some(reach);
        }
        Ok(())
    }
}

impl Manager for Connections {
    type Type = Pooled;
    type Error = PoolError;

    async fn create(&self) -> Result<Pooled, PoolError> {
        // A new one sees everything.
        Ok(Pooled { conn: self.0.create().await?, reach: Some(Reach::ALL) })
    }

    async fn recycle(&self, pooled: &mut Pooled, metrics: &Metrics) -> RecycleResult<PoolError> {
        self.0.recycle(&mut pooled.conn, metrics).await
    }
}
