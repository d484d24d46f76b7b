//! Connections of callers that may be cancelled at any moment.

use std::ops::{Deref, DerefMut};

use diesel_async::pooled_connection::deadpool::Object;
use tokio::runtime::Handle;

use super::super::{Conn, work};

/// A pooled connection in use by one caller. If the caller is cancelled, its running statement is
/// completed before the connection returns to the pool.
pub(crate) struct Lent {
    /// `None` after [`Lent::discard`] or drop.
    object: Option<Object<Conn>>,
    runtime: Handle,
}

impl Lent {
    pub(super) const fn new(object: Object<Conn>, runtime: Handle) -> Self {
        Self { object: Some(object), runtime }
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
        self.object.as_ref().expect("a connection that was not discarded")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Conn {
        self.object.as_mut().expect("a connection that was not discarded")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        match work(&object) {
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
