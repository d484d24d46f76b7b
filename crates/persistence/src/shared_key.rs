//! Which key the secrets of webhooks are sealed with. All servers on a database must have it; the
//! database knows its fingerprint and never the key.

use signalbox_domain::ports::StoreError;

use crate::database::{Database, Kind};

const NAME: &str = "webhooks";

impl Database {
    /// The fingerprint of the key, once a server has said it.
    pub async fn webhook_key(&self) -> Result<Option<String>, StoreError> {
        Ok(match self.kind() {
            Kind::Sqlite(store) => store.server_value(NAME).await?,
            Kind::Postgres(store) => store.server_value(NAME).await?,
        })
    }

    /// Says the fingerprint of the key, unless another server has said one; returns the one that
    /// counts.
    pub async fn keep_webhook_key(&self, fingerprint: &str) -> Result<String, StoreError> {
        Ok(match self.kind() {
            Kind::Sqlite(store) => store.keep_server_value(NAME, fingerprint.to_owned()).await?,
            Kind::Postgres(store) => store.keep_server_value(NAME, fingerprint.to_owned()).await?,
        })
    }

    /// Puts another key in the place of that one, or none.
    pub async fn replace_webhook_key(
        &self,
        old: &str,
        new: Option<&str>,
    ) -> Result<(), StoreError> {
        let (old, new) = (old.to_owned(), new.map(str::to_owned));
        match self.kind() {
            Kind::Sqlite(store) => store.replace_server_value(NAME, old, new).await?,
            Kind::Postgres(store) => store.replace_server_value(NAME, old, new).await?,
        }
        Ok(())
    }
}
