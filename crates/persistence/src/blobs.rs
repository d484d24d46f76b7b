//! Uploaded bytes as files in one folder. A file is written under a temporary name and then
//! renamed, so that a key leads to all of its bytes or none. Only the server's user may read the
//! files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use signalbox_domain::flaky::Trust;
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{Blob, BlobError, BlobStore, BlobWriter};
use signalbox_domain::shares::{Exhausted, Shares};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{BlobOwner, ContentHash};
use tempfile::NamedTempFile;
use time::OffsetDateTime;
use tokio::task::spawn_blocking;

/// The prefix of files that are being written.
const UNFINISHED: &str = ".part-";

/// A blob store of files in a folder, with a limit on their total size. An organization may have
/// three quarters of it, a repository half, all senders with a public id a quarter, and those of
/// one repository an eighth.
#[derive(Clone)]
pub struct FileBlobs {
    folder: PathBuf,
    room: Arc<Room>,
}

/// Whose share of the room bytes are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Organization(OrgId),
    Repository(RepoId),
    /// Senders with the public id of a repository.
    PublicRepository(RepoId),
    /// All senders with a public id.
    Public,
}

impl Holder {
    /// Who holds what is stored under a key, the smallest share first.
    fn of_key(key: &str) -> Vec<Self> {
        let Some(BlobOwner { org, repo, trust }) = BlobOwner::of_key(key) else {
            return Vec::new();
        };
        let all = [Self::Repository(repo), Self::Organization(org)];
        match trust {
            Trust::Public => {
                [Self::PublicRepository(repo), Self::Public].into_iter().chain(all).collect()
            }
            Trust::Token => all.to_vec(),
        }
    }

    /// Its share of all room, in eighths.
    const fn eighths(self) -> u64 {
        match self {
            Self::Organization(_) => 6,
            Self::Repository(_) => 4,
            Self::Public => 2,
            Self::PublicRepository(_) => 1,
        }
    }

    const fn of(self) -> &'static str {
        match self {
            Self::Organization(_) => "the organization",
            Self::Repository(_) => "the repository",
            Self::PublicRepository(_) => "senders with the public id of the repository",
            Self::Public => "senders with a public id",
        }
    }
}

/// The used bytes, counted before the first write and updated from then on. Files that another
/// server writes into the same folder are counted at the next sweep.
struct Room {
    used: Mutex<Shares<Holder>>,
    counted: AtomicBool,
}

impl Room {
    fn used(&self) -> MutexGuard<'_, Shares<Holder>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves room for bytes under a key.
    fn take(&self, bytes: u64, key: &str) -> Result<(), BlobError> {
        let mut used = self.used();
        let most = used.most();
        let limits: Vec<(Holder, u64)> =
            Holder::of_key(key).into_iter().map(|it| (it, most / 8 * it.eighths())).collect();
        used.take(bytes, &limits).map_err(|exhausted| match exhausted {
            Exhausted::All => BlobError::Full,
            Exhausted::Share(holder) => BlobError::ShareFull { of: holder.of() },
        })
    }

    fn give_back(&self, bytes: u64, key: &str) {
        self.used().give_back(bytes, Holder::of_key(key));
    }

    /// Counts the files of a folder.
    fn add(&self, files: &[(PathBuf, fs::Metadata)]) {
        let mut used = self.used();
        for (path, metadata) in files {
            let key = path.file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
            used.add(metadata.len(), Holder::of_key(&key));
        }
    }
}

impl FileBlobs {
    /// Creates a store in this folder, which is created with the first write; it holds at most
    /// `most` bytes.
    pub fn new(folder: PathBuf, most: u64) -> Self {
        let room = Room { used: Mutex::new(Shares::new(most)), counted: AtomicBool::new(false) };
        Self { folder, room: Arc::new(room) }
    }

    fn make_folder(&self) -> io::Result<()> {
        if self.room.counted.load(Ordering::SeqCst) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let found = files(&self.folder)?;
        if !self.room.counted.swap(true, Ordering::SeqCst) {
            self.room.add(&found);
        }
        Ok(())
    }

    /// The file of a key. Keys are generated here; one that could lead outside the folder is
    /// invalid.
    fn path(&self, key: &str) -> Result<PathBuf, BlobError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if key.is_empty() || !key.chars().all(plain) {
            return Err(failed(io::Error::other(format!("invalid key {key:?}"))));
        }
        Ok(self.folder.join(key))
    }
}

/// The regular files of a folder.
fn files(folder: &Path) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        // Deleted meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            found.push((entry.path(), metadata));
        }
    }
    Ok(found)
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

/// A file that is being written. Dropping it removes the file and releases its room.
struct Writing {
    blobs: FileBlobs,
    prefix: String,
    limit: u64,
    written: u64,
    kept: bool,
    /// `None` while a chunk is being written.
    file: Option<(NamedTempFile, Sha256)>,
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.kept {
            self.blobs.room.give_back(self.written, &self.prefix);
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
        self.blobs.room.take(length, &self.prefix)?;
        self.written += length;
        let lost = || failed(io::Error::other("an earlier chunk was not written"));
        let (mut file, mut hash) = self.file.take().ok_or_else(lost)?;
        let chunk = chunk.to_vec();
        let written = on_disk(move || {
            file.write_all(&chunk)?;
            hash.update(&chunk);
            Ok((file, hash))
        });
        self.file = Some(written.await?);
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<Blob, BlobError> {
        let lost = || failed(io::Error::other("a chunk was not written"));
        let (file, hash) = self.file.take().ok_or_else(lost)?;
        let hash = ContentHash(hash.finalize().into());
        let key = format!("{}-{:.16}", self.prefix, hash.to_string());
        let path = self.blobs.path(&key)?;
        let folder = self.blobs.folder.clone();
        let replaced = on_disk(move || {
            file.as_file().sync_all()?;
            let replaced = fs::metadata(&path).map_or(0, |it| it.len());
            file.persist(&path)?;
            // Makes the rename durable.
            File::open(folder)?.sync_all()?;
            Ok(replaced)
        });
        self.blobs.room.give_back(replaced.await?, &key);
        self.kept = true;
        Ok(Blob { key, bytes: self.written, hash })
    }
}

#[async_trait]
impl BlobStore for FileBlobs {
    async fn begin(&self, prefix: &str, limit: u64) -> Result<Box<dyn BlobWriter>, BlobError> {
        self.path(prefix)?;
        let blobs = self.clone();
        let file = on_disk(move || {
            blobs.make_folder()?;
            // Created with permissions for its owner only.
            tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(blobs.folder)
        });
        Ok(Box::new(Writing {
            blobs: self.clone(),
            prefix: prefix.to_owned(),
            limit,
            written: 0,
            kept: false,
            file: Some((file.await?, Sha256::new())),
        }))
    }

    async fn open(&self, key: &str) -> Result<Option<Box<dyn Read + Send>>, BlobError> {
        let path = self.path(key)?;
        let opened = on_disk(move || match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        });
        let buffered = |file| Box::new(io::BufReader::new(file)) as Box<dyn Read + Send>;
        Ok(opened.await?.map(buffered))
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let path = self.path(key)?;
        let removed = on_disk(move || remove(&path)).await?;
        self.room.give_back(removed.unwrap_or_default(), key);
        Ok(())
    }

    async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, BlobError> {
        let before = SystemTime::from(OffsetDateTime::from(before));
        if !self.folder.exists() {
            return Ok(0);
        }
        let (folder, room) = (self.folder.clone(), self.room.clone());
        let swept = on_disk(move || {
            let mut swept = 0_u64;
            let mut left = Vec::new();
            let limit = u64::from(limit);
            for (path, metadata) in files(&folder)? {
                let is_old = metadata.modified().is_ok_and(|at| at < before);
                if is_old && swept < limit && remove(&path)?.is_some() {
                    swept += 1;
                } else {
                    left.push((path, metadata));
                }
            }
            // Recount, because other servers may have written here.
            let most = room.used().most();
            *room.used() = Shares::new(most);
            room.add(&left);
            Ok(swept)
        });
        swept.await
    }
}

/// Removes a file; returns its length, or `None` if it did not exist.
fn remove(path: &Path) -> io::Result<Option<u64>> {
    let length = fs::metadata(path).map(|it| it.len());
    match length.and_then(|length| fs::remove_file(path).map(|()| length)) {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
