//! Connections that are lent to callers who may go away at any moment.

use std::ops::{Deref, DerefMut};

use diesel_async::pooled_connection::deadpool::Object;
use tokio::runtime::Handle;

use super::super::{Conn, work};

/// A connection of the pool that is lent to one caller. What the caller leaves under way is
/// finished before the connection goes back.
pub(crate) struct Lent {
    /// There until the caller is done with it.
    object: Option<Object<Conn>>,
    runtime: Handle,
}

impl Lent {
    pub(super) const fn new(object: Object<Conn>, runtime: Handle) -> Self {
        Self { object: Some(object), runtime }
    }

    /// Closes the connection instead of giving it back.
    pub(crate) fn discard(mut self) {
        if let Some(object) = self.object.take() {
            let conn = Object::take(object);
            // Closing a file may wait for the disk.
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
