//! The simulation of the whole system on both databases: each seed gives the same history as in
//! memory.

use signalbox_domain::ports::Stores;
use signalbox_testkit::memory::MemoryDatabase;
use signalbox_testkit::postgres::Server;
use signalbox_testkit::simulation::simulate;
use tempfile::TempDir;

/// A seed takes about a second on a database; memory runs hundreds.
const SEEDS: std::ops::Range<u64> = 0..6;

fn same_as_in_memory(seeds: std::ops::Range<u64>, url: impl Fn() -> String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    for seed in seeds {
        let database: Stores = runtime.block_on(async {
            let made = signalbox_persistence::connect(&url()).await.expect("a database");
            made.migrate().await.expect("migrated");
            made.stores()
        });
        // The simulation blocks on the database; the drivers need an entered runtime.
        let _around = runtime.enter();
        let in_memory =
            simulate(seed, MemoryDatabase::new().stores()).unwrap_or_else(|it| panic!("{it}"));
        let stored = simulate(seed, database).unwrap_or_else(|it| panic!("{it}"));
        for (number, (one, two)) in in_memory.trace.iter().zip(&stored.trace).enumerate() {
            assert_eq!(one, two, "seed {seed}, line {number}");
        }
        assert_eq!(in_memory, stored, "seed {seed}");
    }
}

#[test]
fn sqlite_gives_the_same_history() {
    let folder = TempDir::new().expect("a folder");
    let number = std::sync::atomic::AtomicU32::new(0);
    same_as_in_memory(SEEDS, || {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        format!("sqlite://{}", folder.path().join(format!("{number}.db")).display())
    });
}

#[test]
fn postgresql_gives_the_same_history() {
    same_as_in_memory(SEEDS, || Server::shared().create_database());
}
