//! The store conformance suite on SQLite.

use signalbox_domain::ports::Stores;
use tempfile::TempDir;

async fn fresh() -> (Stores, TempDir) {
    let folder = TempDir::new().expect("a folder");
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    let database = signalbox_persistence::connect(&url).await.expect("a database");
    database.migrate().await.expect("migrated");
    (database.stores(), folder)
}

signalbox_conformance::store_conformance!(fresh());
