//! The store of uploads: whether something can be written there, read and deleted.

use super::Finding;
use crate::config::{Config, UploadPlace};
use crate::uploads::{blobs, probe, unshared};
use crate::wiring::chain;

pub(super) async fn check(config: &Config) -> Finding {
    let name = "uploads";
    let (shown, folder) = match config.upload_place() {
        Ok(UploadPlace::OwnFolder(folder)) if !folder.is_dir() => {
            return warned(config, format!("{} will be made when needed", folder.display()));
        }
        Ok(UploadPlace::OwnFolder(folder) | UploadPlace::Folder(folder)) => {
            (folder.display().to_string(), Some(folder))
        }
        Ok(UploadPlace::Bucket { name, prefix }) => (format!("s3://{name}/{prefix}"), None),
        Err(words) => return Finding::bad(name, words),
    };
    // Writing would make it, on the wrong disk when it is not mounted.
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Finding::bad(name, format!("{shown}: there is no such folder"));
    }
    let blobs = match blobs(config) {
        Ok(blobs) => blobs,
        Err(words) => return Finding::bad(name, words),
    };
    let probe = probe(&*blobs, &format!("doctor-{}", std::process::id())).await;
    match probe {
        Ok(()) => warned(config, format!("{shown} can be written, read and deleted from")),
        Err(error) => Finding::bad(name, chain(&shown, &error)),
    }
}

fn warned(config: &Config, words: String) -> Finding {
    let embedded = config.database_url().starts_with("sqlite://");
    match unshared(config, embedded) {
        Some(warning) => Finding::warning("uploads", warning),
        None => Finding::good("uploads", words),
    }
}
