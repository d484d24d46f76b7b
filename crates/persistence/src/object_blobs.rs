//! Uploaded bytes as objects in an S3 bucket, which all servers share. An object exists completely
//! or not at all.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
};
use sha2::{Digest, Sha256};
use signalbox_domain::ports::{Blob, BlobError, BlobStore, BlobWriter};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::ContentHash;
use tokio::task::spawn_blocking;

/// The size of a part in bytes: the minimum of S3 for any but the last. An upload holds one part in
/// memory, and a second one while that is being sent.
const PART: usize = 5 * 1024 * 1024;
/// The connect timeout in seconds.
const CONNECT_SECONDS: u64 = 10;
/// The read timeout in seconds.
const SILENT_SECONDS: u64 = 30;
/// How long a request is retried, in seconds.
const RETRY_SECONDS: u64 = 30;

/// The location and the credentials of a bucket.
#[derive(Clone, Default)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// The prefix of keys; may be empty.
    pub prefix: String,
    /// The URL of the service; AWS if `None`. A URL with `http` is not encrypted.
    pub endpoint: Option<String>,
    /// The region; if `None`, from the environment, or `us-east-1`.
    pub region: Option<String>,
    /// The id and the secret of an access key; if `None`, from the environment (`AWS_ACCESS_KEY_ID`
    /// and related variables) or from the machine's role.
    pub access_key: Option<(String, String)>,
}

/// A blob store of objects in a bucket.
#[derive(Clone)]
pub struct ObjectBlobs {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The folder of temporary files for reads.
    spool: PathBuf,
}

impl ObjectBlobs {
    /// Creates a store in this bucket. An object is read through an unnamed temporary file in
    /// `spool`, a folder that is created if it is missing.
    pub fn new(bucket: Bucket, spool: PathBuf) -> Result<Self, BlobError> {
        let Bucket { name, prefix, endpoint, region, access_key } = bucket;
        let options = ClientOptions::new()
            .with_connect_timeout(Duration::from_secs(CONNECT_SECONDS))
            .with_read_timeout(Duration::from_secs(SILENT_SECONDS))
            .with_timeout_disabled();
        let retry = RetryConfig {
            retry_timeout: Duration::from_secs(RETRY_SECONDS),
            ..RetryConfig::default()
        };
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(name)
            // Not every S3 service supports bulk deletion.
            .with_disable_bulk_delete(true)
            .with_client_options(options)
            .with_retry(retry);
        if let Some(region) = region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = endpoint {
            builder = builder.with_allow_http(endpoint.starts_with("http://"));
            builder = builder.with_endpoint(endpoint).with_virtual_hosted_style_request(false);
        }
        if let Some((id, secret)) = access_key {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        }
        let store = Arc::new(builder.build().map_err(failed)?);
        Ok(Self { store, prefix: Path::from(prefix), spool })
    }

    /// The object of a key. Keys are generated here; one that could lead outside the prefix is
    /// invalid.
    fn path(&self, key: &str) -> Result<Path, BlobError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if key.is_empty() || !key.chars().all(plain) {
            return Err(failed(io::Error::other(format!("invalid key {key:?}"))));
        }
        Ok(self.prefix.clone().join(key))
    }

    async fn remove(&self, path: &Path) -> Result<(), BlobError> {
        match self.store.delete(path).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BlobError {
    BlobError::Failed(error.into())
}

/// Runs file operations on a thread for blocking work.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, BlobError> {
    spawn_blocking(work).await.map_err(failed)?.map_err(failed)
}

/// An object that is being written. Dropping it aborts the multipart upload. Parts of a killed
/// server are removed by the bucket's lifecycle rules.
struct Writing {
    store: Arc<dyn ObjectStore>,
    key: String,
    path: Path,
    limit: u64,
    written: u64,
    hash: Sha256,
    part: Vec<u8>,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl Writing {
    async fn send_part(&mut self) -> Result<(), BlobError> {
        let part = PutPayload::from(std::mem::take(&mut self.part));
        if self.upload.is_none() {
            self.upload = Some(self.store.put_multipart(&self.path).await.map_err(failed)?);
        }
        let Some(upload) = &mut self.upload else { return Ok(()) };
        upload.put_part(part).await.map_err(failed)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = upload.abort().await {
                    tracing::warn!(%error, "could not abort a multipart upload");
                }
            });
        }
    }
}

#[async_trait]
impl BlobWriter for Writing {
    async fn write(&mut self, chunk: &[u8]) -> Result<(), BlobError> {
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if self.written.saturating_add(length) > self.limit {
            return Err(BlobError::TooLarge { most: self.limit });
        }
        self.written += length;
        self.hash.update(chunk);
        self.part.extend_from_slice(chunk);
        if self.part.len() >= PART { self.send_part().await } else { Ok(()) }
    }

    async fn finish(mut self: Box<Self>) -> Result<Blob, BlobError> {
        if self.upload.is_none() {
            let whole = PutPayload::from(std::mem::take(&mut self.part));
            self.store.put(&self.path, whole).await.map_err(failed)?;
        } else if !self.part.is_empty() {
            self.send_part().await?;
        }
        if let Some(upload) = &mut self.upload {
            upload.complete().await.map_err(failed)?;
        }
        self.upload = None;
        let hash = ContentHash(self.hash.clone().finalize().into());
        Ok(Blob { key: std::mem::take(&mut self.key), bytes: self.written, hash })
    }
}

#[async_trait]
impl BlobStore for ObjectBlobs {
    async fn begin(&self, prefix: &str, limit: u64) -> Result<Box<dyn BlobWriter>, BlobError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| failed(error.to_string()))?;
        let key = format!("{prefix}-{:016x}", u64::from_be_bytes(random));
        Ok(Box::new(Writing {
            store: self.store.clone(),
            path: self.path(&key)?,
            key,
            limit,
            written: 0,
            hash: Sha256::new(),
            part: Vec::new(),
            upload: None,
        }))
    }

    async fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, BlobError> {
        let found = match self.store.get(&self.path(key)?).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let spool = self.spool.clone();
        let mut file: File = on_disk(move || {
            std::fs::create_dir_all(&spool)?;
            tempfile::tempfile_in(spool)
        })
        .await?;
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(failed)?;
            file = on_disk(move || file.write_all(&piece).map(|()| file)).await?;
        }
        let file = on_disk(move || file.rewind().map(|()| file)).await?;
        Ok(Some(Box::new(BufReader::new(file))))
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.remove(&self.path(key)?).await
    }

    async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, BlobError> {
        let mut objects = self.store.list(Some(&self.prefix));
        let mut swept = 0;
        while swept < u64::from(limit)
            && let Some(object) = objects.next().await
        {
            let object = object.map_err(failed)?;
            if object.last_modified.timestamp_micros() < before.unix_micros() {
                self.remove(&object.location).await?;
                swept += 1;
            }
        }
        Ok(swept)
    }
}
