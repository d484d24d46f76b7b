//! Files that are replaced completely or not at all.

use std::fs::File;
use std::path::{Path, PathBuf};

use signalbox_persistence::create_private;

use crate::AdminError;

/// Copies a file; only this user may read the copy.
pub(super) fn copy_private(from: &Path, to: &Path) -> Result<(), AdminError> {
    let copied = File::open(from)
        .and_then(|mut from| std::io::copy(&mut from, &mut create_private(to)?).map(drop));
    copied.map_err(AdminError::file(to))
}

/// A path with a further ending.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{end}"));
    PathBuf::from(name)
}

/// Removes a file if it exists.
pub(super) fn remove(path: &Path) -> Result<(), AdminError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(AdminError::File { path: path.to_owned(), error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Renames a file durably: the rename survives a power failure.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), AdminError> {
    let failed = || AdminError::file(to);
    File::open(from).and_then(|file| file.sync_all()).map_err(failed())?;
    std::fs::rename(from, to).map_err(failed())?;
    let folder = to.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed())
}
