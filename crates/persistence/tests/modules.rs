//! Unit tests of the modules without stores, which do not compile the stores again.
#![expect(dead_code, unused_imports, reason = "the stores use the rest of the modules")]

use signalbox_persistence::connect;

#[path = "../src/documents/mod.rs"]
mod documents;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/packed_runs.rs"]
mod packed_runs;
#[path = "../src/sql_types.rs"]
mod sql_types;
#[path = "../src/trouble.rs"]
mod trouble;
