//! The store conformance suite on the stores in memory.

use std::future::{Ready, ready};

use signalbox_domain::ports::Stores;
use signalbox_testkit::memory::MemoryDatabase;

fn fresh() -> Ready<(Stores, MemoryDatabase)> {
    let database = MemoryDatabase::new();
    ready((database.stores(), database))
}

signalbox_conformance::store_conformance!(fresh());
