//! Where the bytes of uploads are kept.

use std::sync::Arc;

use signalbox_config::{Config, UploadPlace};
use signalbox_domain::ports::BlobStore;
use signalbox_persistence::{Bucket, FileBlobs, ObjectBlobs};

use crate::error::AppError;

const MIB: u64 = 1024 * 1024;

/// The store of a configuration.
pub(crate) fn blobs(config: &Config) -> Result<Arc<dyn BlobStore>, AppError> {
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
            Arc::new(objects.map_err(AppError::failed("uploads.store"))?)
        }
    })
}
