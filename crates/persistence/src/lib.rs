#![doc = include_str!("../README.md")]
#![expect(
    clippy::duplicate_mod,
    reason = "the stores are one source that is compiled once for each database"
)]

use std::time::Duration;

mod among;
mod backup;
mod blobs;
mod columns;
mod database;
mod documents;
mod error;
mod health;
mod object_blobs;
mod packed_runs;
mod postgres;
mod private_file;
mod reach;
mod schema;
mod shared_key;
mod sql_types;
mod sqlite;
mod statement;
#[cfg(feature = "testing")]
pub mod testing;
mod trouble;
mod work;

pub use backup::BackupError;
pub use blobs::FileBlobs;
pub use database::{ConnectError, Database, MigrationStatus, PoolState, connect};
pub use health::Ailment;
pub use object_blobs::{Bucket, ObjectBlobs};
pub use private_file::create_private;

/// How long a caller waits for a connection or for its turn to write.
const PATIENCE: Duration = Duration::from_secs(10);
