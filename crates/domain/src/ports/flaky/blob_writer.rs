//! The writer of a blob.

use async_trait::async_trait;

use crate::ports::{Blob, BlobError};

/// Writes a blob with bounded memory. Dropping it discards the blob.
#[async_trait]
pub trait BlobWriter: Send {
    /// Appends bytes; fails if the blob exceeds its limit.
    async fn write(&mut self, chunk: &[u8]) -> Result<(), BlobError>;

    /// Completes the blob, atomically and durably.
    async fn finish(self: Box<Self>) -> Result<Blob, BlobError>;
}
