//! The store of uploaded bytes, which are kept for some time after processing.

use std::io::Read;

use async_trait::async_trait;
use thiserror::Error;

use crate::ports::BlobWriter;
use crate::time::Timestamp;
use crate::upload::ContentHash;

/// The error of a blob store.
#[derive(Debug, Error)]
pub enum BlobError {
    /// The blob exceeds the size limit.
    #[error("the upload is too large: at most {most} bytes are allowed")]
    TooLarge {
        /// The limit in bytes.
        most: u64,
    },
    /// The whole store is full.
    #[error("the store for uploads is full")]
    Full,
    /// The share of the store is full that the sender's uploads are taken from.
    #[error("the share of {of} in the store for uploads is full")]
    ShareFull {
        /// Whose share: `the organization`, `the repository`, …
        of: &'static str,
    },
    /// The store is not available.
    #[error("could not access the store for uploads")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A stored blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The key; starts with the prefix.
    pub key: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The hash of the bytes.
    pub hash: ContentHash,
}

/// Stores uploaded bytes. Every server on the same store can read a finished blob.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Starts a blob of at most `limit` bytes under a key that starts with `prefix`, which may
    /// contain letters, digits and hyphens. A prefix that starts with that of a
    /// [`BlobOwner`](crate::upload::BlobOwner) takes room from the shares of this owner, if the
    /// store is limited.
    async fn begin(&self, prefix: &str, limit: u64) -> Result<Box<dyn BlobWriter>, BlobError>;

    /// Opens the blob with a key; `None` if it does not exist.
    async fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, BlobError>;

    /// Deletes the blob with a key, if it exists.
    async fn delete(&self, key: &str) -> Result<(), BlobError>;

    /// Deletes up to `limit` blobs that were written, or started and never finished, before a time;
    /// returns the number of deleted blobs.
    async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, BlobError>;
}
