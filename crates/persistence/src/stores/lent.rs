//! Connections of callers that may be cancelled at any moment.

use std::ops::{Deref, DerefMut};

use deadpool::managed::Object;
use tokio::runtime::Handle;

use super::super::{Conn, work};
use super::Connections;
use crate::error::DbError;
use crate::reach::Reach;

/// A pooled connection in use by one caller. If the caller is cancelled, its running statement is
/// completed before the connection returns to the pool.
pub(crate) struct Lent {
    /// `None` after [`Lent::discard`] or drop.
    object: Option<Object<Connections>>,
    runtime: Handle,
}

impl Lent {
    pub(super) const fn new(object: Object<Connections>, runtime: Handle) -> Self {
        Self { object: Some(object), runtime }
    }

    /// Lets it see these rows and no others.
    pub(super) async fn restrict(&mut self, reach: Reach) -> Result<(), DbError> {
        match &mut self.object {
            Some(object) => object.restrict(reach).await,
            None => Ok(()),
        }
    }

    /// Closes the connection instead of returning it to the pool.
    pub(crate) fn discard(mut self) {
        if let Some(object) = self.object.take() {
            let conn = Object::take(object);
            // Closing a file may block on the disk.
            drop(self.runtime.spawn_blocking(move || drop(conn)));
        }
    }
}

impl Deref for Lent {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.object.as_ref().expect("a connection that was not discarded").conn
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.object.as_mut().expect("a connection that was not discarded").conn
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        match work(&object.conn) {
            Some(work) if !work.is_idle() => {
                drop(self.runtime.spawn(async move {
                    work.idle().await;
                    drop(object);
                }));
            }
            Some(_) | None => drop(object),
        }
    }
}
