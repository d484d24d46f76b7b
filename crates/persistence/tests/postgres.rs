//! The store conformance suite on PostgreSQL.

use signalbox_domain::ports::Stores;
use signalbox_testkit::postgres::Server;

async fn fresh() -> (Stores, ()) {
    let url = Server::shared().create_database();
    let database = signalbox_persistence::connect(&url).await.expect("a database");
    database.migrate().await.expect("migrated");
    (database.stores(), ())
}

signalbox_conformance::store_conformance!(fresh());
