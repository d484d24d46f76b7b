//! Bytes on their way into the store for uploads.

use async_trait::async_trait;

use crate::ports::{Blob, BlobError};

/// Bytes that are being written, of which a bounded part is in memory. Dropping it leaves nothing
/// behind.
#[async_trait]
pub trait BlobWriter: Send {
    /// Adds bytes, or says that they are too many.
    async fn write(&mut self, chunk: &[u8]) -> Result<(), BlobError>;

    /// Keeps what was written. It is there whole or not at all, also after a power cut.
    async fn finish(self: Box<Self>) -> Result<Blob, BlobError>;
}
