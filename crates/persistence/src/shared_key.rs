//! The key that seals webhook secrets. All servers on a database must have the same key; the
//! database stores only its fingerprint.

use signalbox_domain::ports::StoreError;

use crate::database::{Database, Kind};

const NAME: &str = "webhooks";

impl Database {
    /// The fingerprint of the key; `None` before the first server has set it.
    pub async fn webhook_key(&self) -> Result<Option<String>, StoreError> {
        Ok(match self.kind() {
            Kind::Sqlite(store) => store.server_value(NAME).await?,
            Kind::Postgres(store) => store.server_value(NAME).await?,
        })
    }

    /// Sets the fingerprint of the key unless it is set; returns the stored fingerprint.
    pub async fn keep_webhook_key(&self, fingerprint: &str) -> Result<String, StoreError> {
        Ok(match self.kind() {
            Kind::Sqlite(store) => store.keep_server_value(NAME, fingerprint.to_owned()).await?,
            Kind::Postgres(store) => store.keep_server_value(NAME, fingerprint.to_owned()).await?,
        })
    }

    /// Replaces the fingerprint, or removes it for `None`, if it equals the expected one.
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
