//! Checks that the store of uploads can be written, read and deleted from.

use std::io::Read;

use signalbox_config::{Config, UploadPlace};
use signalbox_domain::ports::{BlobError, BlobStore};
use signalbox_terminal::{causes, chain};

use super::Finding;
use crate::Program;

const MIB: u64 = 1024 * 1024;
/// The content of the test object.
const PROBE: &[u8] = b"Signalbox was here.";

pub(super) async fn check(program: &dyn Program, config: &Config) -> Finding {
    let name = "uploads";
    let (shown, folder) = match config.upload_place() {
        Ok(UploadPlace::OwnFolder(folder)) if !folder.is_dir() => {
            return warned(config, format!("{} is created when needed", folder.display()));
        }
        Ok(UploadPlace::OwnFolder(folder) | UploadPlace::Folder(folder)) => {
            (folder.display().to_string(), Some(folder))
        }
        Ok(UploadPlace::Bucket { name, prefix }) => (format!("s3://{name}/{prefix}"), None),
        Err(error) => return Finding::bad(name, error.to_string()),
    };
    // Writing would make it, on the wrong disk when it is not mounted.
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Finding::bad(name, format!("{shown}: no such folder"));
    }
    let blobs = match program.blobs(config) {
        Ok(blobs) => blobs,
        Err(error) => return Finding::bad(name, causes(&*error)),
    };
    let probe = probe(&*blobs, &format!("doctor-{}", std::process::id())).await;
    match probe {
        Ok(()) => warned(config, format!("{shown} can be written, read and deleted from")),
        Err(error) => Finding::bad(name, chain(&shown, &error)),
    }
}

fn warned(config: &Config, words: String) -> Finding {
    let embedded = config.database_url().starts_with("sqlite://");
    match config.unshared_uploads(embedded) {
        Some(warning) => Finding::warning("uploads", warning),
        None => Finding::good("uploads", words),
    }
}

/// Writes a test object, reads it and deletes it.
async fn probe(blobs: &dyn BlobStore, name: &str) -> Result<(), BlobError> {
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
    Err(BlobError::Failed("the object that was read differs from the one that was written".into()))
}
