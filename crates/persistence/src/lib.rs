#![doc = include_str!("../README.md")]
#![expect(
    clippy::duplicate_mod,
    reason = "the stores are one source that is compiled once for each database"
)]

mod backup;
mod blobs;
mod database;
mod documents;
mod error;
mod object_blobs;
mod postgres;
mod schema;
mod shared_key;
mod sqlite;

pub use backup::BackupError;
pub use blobs::FileBlobs;
pub use database::{ConnectError, Database, MigrationStatus, PoolState, connect};
pub use object_blobs::{Bucket, ObjectBlobs};
