//! Cancelled callers: their statements are completed, and their connections can be reused. They run
//! on a single-threaded runtime, like the requests of the HTTP server.

use std::time::Duration;

use signalbox_domain::ids::{HostId, OrgId};
use signalbox_domain::ports::{Org, Stores};
use signalbox_domain::time::Timestamp;
use signalbox_persistence::{Database, connect};
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;
use tokio::runtime::Builder;
use uuid::Uuid;

const CALLERS: u64 = 400;

fn cancelled_callers(url: &str) {
    let servers = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let database = servers.block_on(async {
        let database = connect(url).await.expect("a database");
        database.migrate().await.expect("migrated");
        database
    });
    let callers = Builder::new_current_thread().enable_all().build().expect("a runtime");
    callers.block_on(go_away(&database));
}

async fn go_away(database: &Database) {
    let stores = database.stores();
    let org = OrgId(Uuid::from_u128(1));
    let slug = signalbox_domain::ids::OrgSlug::new("acme").expect("a slug");
    let made = Org { id: org, slug, created_at: Timestamp::from_unix_seconds(1) };
    stores.account.orgs.create(&made).await.expect("an organization");
    for number in 0..CALLERS {
        // Each is cancelled at another moment.
        let patience = Duration::from_micros(number * 7 % 900);
        match number % 3 {
            0 => drop(tokio::time::timeout(patience, stores.webhook.event_log.newest(org)).await),
            1 => drop(tokio::time::timeout(patience, stores.account.orgs.list()).await),
            _ => drop(tokio::time::timeout(patience, hear(&stores, org, number)).await),
        }
    }
    // The connections of cancelled calls are free again, and each write is complete or absent.
    for number in CALLERS..CALLERS + 40 {
        assert!(hear(&stores, org, number).await, "{number} is new");
        assert!(!hear(&stores, org, number).await, "{number} is known");
        assert_eq!(stores.account.orgs.list().await.expect("a list").len(), 1);
    }
    let pool = database.pool();
    assert!(pool.open <= pool.max, "{pool:?}");
    assert_eq!(database.ailments().await, []);
}

async fn hear(stores: &Stores, org: OrgId, number: u64) -> bool {
    let host = HostId::new("git.test").expect("a host");
    let at = Timestamp::from_unix_seconds(1);
    stores
        .host
        .inbound_deliveries
        .taken(org, &host, &number.to_string(), at)
        .await
        .expect("written")
}

#[test]
fn cancelled_callers_leave_connections_usable_on_sqlite() {
    let folder = TempDir::new().expect("a folder");
    cancelled_callers(&format!("sqlite://{}", folder.path().join("test.db").display()));
}

#[test]
fn cancelled_callers_leave_connections_usable_on_postgres() {
    cancelled_callers(&Server::shared().create_database());
}
