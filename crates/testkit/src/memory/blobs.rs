//! A blob store in memory.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ports::{Blob, BlobError, BlobStore, BlobWriter, Clock};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::ContentHash;

type Kept = BTreeMap<String, (Timestamp, Vec<u8>)>;

/// A blob store in memory. Clones share their contents.
#[derive(Clone)]
pub struct MemoryBlobs {
    kept: Arc<Mutex<Kept>>,
    clock: Arc<dyn Clock>,
}

impl MemoryBlobs {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { kept: Arc::default(), clock }
    }

    /// The stored keys.
    pub fn keys(&self) -> Vec<String> {
        self.blobs().keys().cloned().collect()
    }

    fn blobs(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writing {
    store: MemoryBlobs,
    prefix: String,
    limit: u64,
    bytes: Vec<u8>,
}

#[async_trait]
impl BlobWriter for Writing {
    async fn write(&mut self, chunk: &[u8]) -> Result<(), BlobError> {
        let length = u64::try_from(self.bytes.len() + chunk.len()).unwrap_or(u64::MAX);
        if length > self.limit {
            return Err(BlobError::TooLarge { most: self.limit });
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<Blob, BlobError> {
        let hash = ContentHash::of(&self.bytes);
        let key = format!("{}-{:.16}", self.prefix, hash.to_string());
        let bytes = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        let at = self.store.clock.now();
        self.store.blobs().insert(key.clone(), (at, self.bytes));
        Ok(Blob { key, bytes, hash })
    }
}

#[async_trait]
impl BlobStore for MemoryBlobs {
    async fn begin(&self, prefix: &str, limit: u64) -> Result<Box<dyn BlobWriter>, BlobError> {
        let (store, prefix) = (self.clone(), prefix.to_owned());
        Ok(Box::new(Writing { store, prefix, limit, bytes: Vec::new() }))
    }

    async fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, BlobError> {
        let bytes = self.blobs().get(key).map(|(_, bytes)| bytes.clone());
        Ok(bytes.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read + Send>))
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.blobs().remove(key);
        Ok(())
    }

    async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, BlobError> {
        let mut left = limit;
        let mut swept = 0;
        self.blobs().retain(|_, (at, _)| {
            let goes = left > 0 && *at < before;
            if goes {
                left -= 1;
                swept += 1;
            }
            !goes
        });
        Ok(swept)
    }
}
