//! Where the bytes of uploads are kept, and whether that works.

use std::io::Read;
use std::sync::Arc;

use signalbox_domain::ports::{BlobError, BlobStore};
use signalbox_persistence::{Bucket, FileBlobs, ObjectBlobs};

use crate::config::{Config, UploadPlace};
use crate::wiring::chain;

const MIB: u64 = 1024 * 1024;
/// What is written to see whether it can be read.
const PROBE: &[u8] = b"Signalbox was here.";

/// The store of a configuration.
pub(crate) fn blobs(config: &Config) -> Result<Arc<dyn BlobStore>, String> {
    let most = u64::from(config.flaky.spool_mib) * MIB;
    Ok(match config.upload_place()? {
        UploadPlace::OwnFolder(folder) | UploadPlace::Folder(folder) => {
            Arc::new(FileBlobs::new(folder, most))
        }
        UploadPlace::Bucket { name, prefix } => {
            let _installed = rustls::crypto::ring::default_provider().install_default();
            let bucket = Bucket {
                name,
                prefix,
                endpoint: config.uploads.endpoint.clone(),
                region: config.uploads.region.clone(),
                access_key: config.upload_credentials()?,
            };
            let spool = config.data_dir().join("uploads");
            let objects = ObjectBlobs::new(bucket, spool);
            Arc::new(objects.map_err(|error| chain("uploads.store", &error))?)
        }
    })
}

/// Writes a few bytes, reads them and deletes them.
pub(crate) async fn probe(blobs: &dyn BlobStore, name: &str) -> Result<(), BlobError> {
    let mut writer = blobs.begin(name, MIB).await?;
    writer.write(PROBE).await?;
    let blob = writer.finish().await?;
    let found = blobs.open(&blob.key).await?;
    let read = tokio::task::spawn_blocking(move || {
        let mut content = Vec::new();
        found.map_or(Ok(0), |mut found| found.read_to_end(&mut content)).map(|_| content)
    });
    let read = read.await.map_err(|error| BlobError::Failed(error.into()));
    let read = read.and_then(|it| it.map_err(|error| BlobError::Failed(error.into())));
    blobs.delete(&blob.key).await?;
    if read? == PROBE {
        return Ok(());
    }
    Err(BlobError::Failed("what was written is not what is read".into()))
}

/// What to say about a folder that other servers on the database cannot read; `None` when there are
/// none, or the folder was chosen.
pub(crate) fn unshared(config: &Config, embedded: bool) -> Option<String> {
    match config.upload_place() {
        Ok(UploadPlace::OwnFolder(folder)) if !embedded => Some(format!(
            "uploads are kept in {}, which only this server reads: with several servers on this \
             database set uploads.store to a shared folder or a bucket",
            folder.display()
        )),
        Ok(UploadPlace::OwnFolder(_) | UploadPlace::Folder(_) | UploadPlace::Bucket { .. })
        | Err(_) => None,
    }
}
