//! Uploaded bytes, kept until they are read and a while longer.

use std::io::Read;

use async_trait::async_trait;
use thiserror::Error;

use crate::ports::BlobWriter;
use crate::time::Timestamp;
use crate::upload::ContentHash;

/// Why bytes were not kept or not found.
#[derive(Debug, Error)]
pub enum BlobError {
    /// More than may be written at once.
    #[error("the upload has more than {most} bytes")]
    TooLarge {
        /// The limit in bytes.
        most: u64,
    },
    /// The whole store is full.
    #[error("there is no room for uploads")]
    Full,
    /// The store cannot be used.
    #[error("the store for uploads cannot be used")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Bytes that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Where they are; starts with the prefix.
    pub key: String,
    /// How many.
    pub bytes: u64,
    /// Their hash.
    pub hash: ContentHash,
}

/// Keeps uploaded bytes. What one server has finished every server on the same store reads.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Begins to write at most `limit` bytes under a key that starts with `prefix`, which has
    /// letters, digits and hyphens only.
    async fn begin(&self, prefix: &str, limit: u64) -> Result<Box<dyn BlobWriter>, BlobError>;

    /// The bytes under a key; `None` when they are not there, or no longer.
    async fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, BlobError>;

    /// Removes the bytes under a key, if they are there.
    async fn delete(&self, key: &str) -> Result<(), BlobError>;

    /// Removes up to `limit` blobs that were written before that time, and what was begun before
    /// it and never finished. Returns how many were removed.
    async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, BlobError>;
}
