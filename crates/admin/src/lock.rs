//! One server for an embedded database, and one agent for a folder of checks: the process that holds the
//! lock file owns it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use signalbox_config::Config;

use crate::AdminError;

/// An exclusive right, such as to use an embedded database, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The lock file of an embedded database; `None` for other databases, which need none.
fn path(config: &Config) -> Option<PathBuf> {
    let url = config.database_url();
    url.strip_prefix("sqlite://").map(|path| PathBuf::from(format!("{path}.lock")))
}

/// Takes the lock for this process. The operating system releases it when the process ends.
pub fn take(config: &Config) -> Result<Option<Lock>, AdminError> {
    let Some(path) = path(config) else { return Ok(None) };
    hold(&path)?.map(Some).ok_or(AdminError::Locked(path))
}

/// Holds a lock file for this process; `None` while another one has it.
pub(crate) fn hold(path: &Path) -> Result<Option<Lock>, AdminError> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(AdminError::file(path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(AdminError::File { path: path.to_owned(), error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedded_database_has_one_holder_and_others_have_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = Config::default();
        config.database.url = Some(format!("sqlite://{}/a.db", folder.path().display()));
        let held = take(&config).expect("free").expect("a lock");
        assert!(
            take(&config).expect_err("held").to_string().contains("is running on this database")
        );
        drop(held);
        assert!(take(&config).expect("free again").is_some());
        config.database.url = Some("postgres://h/d".into());
        assert!(take(&config).expect("no lock needed").is_none());
    }
}
