//! Connections as the stores use them, for tests of what a connection sees.

use std::ops::DerefMut;

use diesel_async::AsyncPgConnection;
use signalbox_domain::ids::OrgId;

use crate::postgres::pool;
use crate::postgres::stores::Store;

/// Connections to a PostgreSQL database.
pub struct Connections(Store);

impl Connections {
    /// To the database with this URL.
    ///
    /// # Panics
    ///
    /// For an invalid URL.
    pub fn to(url: &str) -> Self {
        Self(Store::new(pool(url).expect("a valid URL")))
    }

    /// A connection that sees the rows of this organization, or of all.
    ///
    /// # Panics
    ///
    /// If the database does not answer.
    pub async fn of(
        &self,
        org: Option<OrgId>,
    ) -> impl DerefMut<Target = AsyncPgConnection> + use<> {
        self.0.connection(org).await.expect("a connection")
    }

    /// The number of open connections.
    pub fn opened(&self) -> usize {
        self.0.pool_status().size
    }
}
