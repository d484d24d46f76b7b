//! The archive of a backup: a compressed tar file with a manifest, a copy of the database, and the
//! key of webhook secrets.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use signalbox_persistence::create_private;
use signalbox_terminal::Progress;
use tempfile::TempDir;

use crate::AdminError;

/// The format that this version writes, and the newest that it reads.
const FORMAT: u32 = 1;
/// The most bytes of a manifest.
const MANIFEST_BYTES: u64 = 1024 * 1024;
const MANIFEST: &str = "manifest.json";
/// The file with the keys of webhook secrets.
pub(super) const KEYS: &str = "webhooks.key";

/// The kind of database in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Engine {
    /// A database file.
    Sqlite,
    /// A dump in the custom format of `pg_dump`.
    Postgresql,
}

impl Engine {
    /// The name of the database in the archive.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Sqlite => "database.sqlite",
            Self::Postgresql => "database.dump",
        }
    }
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgresql => "PostgreSQL",
        })
    }
}

/// What a backup contains.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The version of this format.
    format: u32,
    /// The version of the program that made the backup.
    pub(super) version: String,
    /// RFC 3339, when it was made.
    pub(super) created_at: String,
    pub(super) engine: Engine,
    /// The applied migrations of the database, oldest first.
    pub(super) migrations: Vec<String>,
    /// The fingerprint of the key that secrets in the database are sealed with.
    pub(super) webhook_key: Option<String>,
    /// The other files of the archive.
    files: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    bytes: u64,
    /// In lower-case hex.
    sha256: String,
}

/// What the manifest of a new backup says about its database.
pub(super) struct About {
    pub(super) created_at: String,
    pub(super) engine: Engine,
    pub(super) migrations: Vec<String>,
    pub(super) webhook_key: Option<String>,
}

/// Writes an archive of files, each under its name, to a new file that only this user may read.
pub(super) async fn write(
    to: &Path,
    about: About,
    files: Vec<(&'static str, PathBuf)>,
) -> Result<(), AdminError> {
    let to = to.to_owned();
    blocking(move || write_files(&to, about, &files)).await
}

/// Runs work that reads and writes much on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AdminError> + Send + 'static,
) -> Result<T, AdminError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(AdminError::failed("archive")(error)))
}

fn write_files(
    to: &Path,
    about: About,
    files: &[(&'static str, PathBuf)],
) -> Result<(), AdminError> {
    let sizes = files.iter().filter_map(|(_, path)| Some(std::fs::metadata(path).ok()?.len()));
    // Each file is read for its checksum first.
    let progress = Progress::bytes("writing the archive", sizes.sum::<u64>() * 2);
    let mut entries = Vec::new();
    for (name, path) in files {
        let failed = || AdminError::file(path);
        let mut file = progress.reading(File::open(path).map_err(failed())?);
        let (bytes, sha256) = copy(&mut file, &mut std::io::sink()).map_err(failed())?;
        entries.push(Entry { name: (*name).to_owned(), bytes, sha256 });
    }
    let manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: about.created_at,
        engine: about.engine,
        migrations: about.migrations,
        webhook_key: about.webhook_key,
        files: entries,
    };
    let text = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::from)?;
    let file = create_private(to).map_err(AdminError::file(to))?;
    let written = (|| {
        let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(text.len().try_into().unwrap_or(u64::MAX));
        archive.append_data(&mut header, MANIFEST, text.as_slice())?;
        for ((name, path), entry) in files.iter().zip(&manifest.files) {
            header.set_size(entry.bytes);
            let file = progress.reading(File::open(path)?);
            archive.append_data(&mut header, name, file.take(entry.bytes))?;
        }
        archive.into_inner()?.finish()?.sync_all()
    })();
    written.map_err(AdminError::file(to))
}

/// An unpacked archive. Its folder is removed with it.
pub(super) struct Unpacked {
    folder: TempDir,
    pub(super) manifest: Manifest,
}

impl Unpacked {
    /// Unpacks an archive into a new folder below `parent`, which only this user may read. Every
    /// file of the manifest must be there, unchanged, and no other.
    pub(super) async fn new(from: &Path, parent: &Path) -> Result<Self, AdminError> {
        let folder = tempfile::Builder::new().prefix(".signalbox-restore-").tempdir_in(parent);
        let folder = folder.map_err(AdminError::file(parent))?;
        let (from, to) = (from.to_owned(), folder.path().to_owned());
        let manifest = blocking(move || Self::unpack(&from, &to)).await?;
        Ok(Self { folder, manifest })
    }

    fn unpack(from: &Path, folder: &Path) -> Result<Manifest, AdminError> {
        let shown = from.display();
        let foreign = |_| AdminError::Refused(format!("not a backup of Signalbox: {shown}"));
        let damaged = |problem: &str| AdminError::Refused(format!("{shown} is damaged: {problem}"));
        let cut = |_| damaged("it ends early, or is not compressed as it was written");
        let file = File::open(from).map_err(AdminError::file(from))?;
        let size = file.metadata().map_or(0, |it| it.len());
        let progress = Progress::bytes("reading the archive", size);
        let mut archive = tar::Archive::new(GzDecoder::new(progress.reading(file)));
        let mut entries = archive.entries().map_err(foreign)?;
        let first = entries.next().transpose().map_err(foreign)?;
        let first = first.filter(|entry| entry.path().is_ok_and(|it| it == Path::new(MANIFEST)));
        let first = first.ok_or_else(|| foreign(std::io::ErrorKind::NotFound.into()))?;
        let mut text = String::new();
        first.take(MANIFEST_BYTES).read_to_string(&mut text).map_err(cut)?;
        let manifest: Manifest = serde_json::from_str(&text)
            .map_err(|error| damaged(&format!("{MANIFEST}: {error}")))?;
        if manifest.format > FORMAT {
            return Err(AdminError::Refused(format!(
                "{shown} was made by Signalbox {}, which is newer than this program",
                manifest.version
            )));
        }
        let mut missing: Vec<&Entry> = manifest.files.iter().collect();
        for entry in entries {
            let mut entry = entry.map_err(cut)?;
            let name = entry.path().map_err(cut)?.display().to_string();
            let place = missing.iter().position(|it| it.name == name);
            // A name in a manifest is not a path.
            let place = place.filter(|_| {
                [Engine::Sqlite.file(), Engine::Postgresql.file(), KEYS].contains(&name.as_str())
            });
            let Some(place) = place else {
                return Err(damaged(&format!("unexpected file {name:?}")));
            };
            let expected = missing.swap_remove(place);
            let path = folder.join(&name);
            let mut copied = create_private(&path).map_err(AdminError::file(&path))?;
            let (bytes, sha256) = copy(&mut (&mut entry).take(expected.bytes), &mut copied)
                .map_err(|error| cut_or_full(error, &path, &cut))?;
            if bytes != expected.bytes || sha256 != expected.sha256 {
                return Err(damaged(&format!("{name} differs from its checksum")));
            }
        }
        if let Some(entry) = missing.first() {
            return Err(damaged(&format!("{} is missing", entry.name)));
        }
        // The checksum of the whole file comes last.
        std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(cut)?;
        drop(missing);
        Ok(manifest)
    }

    /// The copy of the database.
    pub(super) fn database(&self) -> PathBuf {
        self.folder.path().join(self.manifest.engine.file())
    }

    /// The file with the keys of webhook secrets, if the backup has it.
    pub(super) fn keys(&self) -> Option<PathBuf> {
        Some(self.folder.path().join(KEYS)).filter(|path| path.exists())
    }
}

/// A full disk is not a damaged archive.
fn cut_or_full(
    error: std::io::Error,
    path: &Path,
    cut: &impl Fn(std::io::Error) -> AdminError,
) -> AdminError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        AdminError::file(path)(error)
    } else {
        cut(error)
    }
}

/// Copies everything; returns the number of bytes, and their SHA-256 in lower-case hex.
fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<(u64, String)> {
    let (mut digest, mut bytes) = (Sha256::new(), 0_u64);
    let mut part = vec![0; 1024 * 1024];
    loop {
        let read = from.read(&mut part)?;
        let Some(part) = part.get(..read).filter(|part| !part.is_empty()) else { break };
        digest.update(part);
        to.write_all(part)?;
        bytes += u64::try_from(read).unwrap_or(u64::MAX);
    }
    to.flush()?;
    Ok((bytes, HEXLOWER.encode(&digest.finalize())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use signalbox_testkit::fuzz::{committed, folder, fuzz};

    use super::*;

    fn about() -> About {
        About {
            created_at: "2026-11-25T04:00:00.000Z".to_owned(),
            engine: Engine::Sqlite,
            migrations: vec!["1".to_owned()],
            webhook_key: None,
        }
    }

    /// Bytes that do not repeat: within a repetition, a changed byte of an archive may mean the same.
    fn database_bytes() -> Vec<u8> {
        (0_u32..1_000).flat_map(|it| Sha256::digest(it.to_le_bytes())).collect()
    }

    fn archive(folder: &Path) -> PathBuf {
        let (database, keys) = (folder.join("a.db"), folder.join("a.key"));
        std::fs::write(&database, database_bytes()).expect("written");
        std::fs::write(&keys, "key").expect("written");
        let to = folder.join("backup.tar.gz");
        let files = [(Engine::Sqlite.file(), database), (KEYS, keys)];
        write_files(&to, about(), &files).expect("an archive");
        to
    }

    async fn refusal(archive: &Path) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let refused =
            Unpacked::new(archive, folder.path()).await.err().expect("refused").to_string();
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0, "nothing is left behind: {refused}");
        refused
    }

    #[tokio::test]
    async fn what_is_written_is_unpacked() {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = archive(folder.path());
        let mode = std::fs::metadata(&archive).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let unpacked = Unpacked::new(&archive, folder.path()).await.expect("an archive");
        assert_eq!(std::fs::read(unpacked.database()).expect("a file"), database_bytes());
        assert_eq!(std::fs::read(unpacked.keys().expect("keys")).expect("a file"), b"key");
        assert_eq!(unpacked.manifest.migrations, ["1"]);
        let mode = std::fs::metadata(unpacked.database()).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn an_archive_that_is_cut_or_changed_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = archive(folder.path());
        let bytes = std::fs::read(&archive).expect("a file");
        let other = folder.path().join("other");
        for length in [0, 1, 10, bytes.len() / 2, bytes.len() - 100] {
            std::fs::write(&other, &bytes[..length]).expect("written");
            refusal(&other).await;
        }
        for place in (20..bytes.len() - 8).step_by(97) {
            let mut changed = bytes.clone();
            changed[place] ^= 0x55;
            std::fs::write(&other, &changed).expect("written");
            refusal(&other).await;
        }
        std::fs::write(&other, "SQLite format 3\0").expect("written");
        assert!(refusal(&other).await.contains("not a backup of Signalbox"));
    }

    /// An archive with any entries.
    fn forged(folder: &Path, entries: &[(&str, &[u8])]) -> PathBuf {
        let to = folder.join("forged");
        let file = File::create(&to).expect("a file");
        let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
        for (name, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            let place = header.as_gnu_mut().expect("a header");
            place.name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            archive.append(&header, *bytes).expect("appended");
        }
        archive.into_inner().and_then(GzEncoder::finish).expect("an archive");
        to
    }

    /// An archive with the files of a backup and any manifest.
    fn with_manifest(manifest: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
        let database = b"SQLite format 3\0 and its pages".to_vec();
        vec![(MANIFEST, manifest.to_vec()), ("database.sqlite", database), (KEYS, b"key".to_vec())]
    }

    /// What is unpacked is what the manifest lists; only these files are written.
    #[test]
    fn fuzz_manifests() {
        let (place, manifests) = (folder(), committed("backup-manifest"));
        let words =
            ["null", "-1", "1e400", "\"../a\"", "database.sqlite", "webhooks.key", "[", "{", "31"];
        let unpacked = std::cell::Cell::new(0);
        fuzz("backup-manifest", &manifests, &words, |input| {
            let files = with_manifest(input.get(..8_192).unwrap_or(input));
            let entries: Vec<_> = files.iter().map(|(name, it)| (*name, it.as_slice())).collect();
            let found = tried(place.path(), &forged(place.path(), &entries));
            let Some(manifest) = found else { return };
            unpacked.set(unpacked.get() + 1);
            assert!(manifest.format <= FORMAT && manifest.files.len() == 2);
            for entry in &manifest.files {
                let (_, bytes) =
                    files.iter().find(|(name, _)| *name == entry.name).expect("a file");
                assert_eq!(entry.sha256, HEXLOWER.encode(&Sha256::digest(bytes)));
            }
        });
        assert!(unpacked.get() > 0, "none is accepted");
    }

    #[test]
    fn fuzz_archives() {
        let place = folder();
        let files = with_manifest(&committed("backup-manifest")[2]);
        let entries: Vec<_> = files.iter().map(|(name, it)| (*name, it.as_slice())).collect();
        let whole = std::fs::read(forged(place.path(), &entries)).expect("a file");
        let mut unpacked = Vec::new();
        GzDecoder::new(&*whole).read_to_end(&mut unpacked).expect("a tar file");
        let check = |bytes: &[u8]| {
            let file = place.path().join("forged");
            std::fs::write(&file, bytes).expect("written");
            drop(tried(place.path(), &file));
        };
        fuzz("backup", &[whole], &[], check);
        fuzz("backup-tar", &[unpacked], &["../../a", "ustar", "././@LongLink", "\0"], |bytes| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes.get(..8_192).unwrap_or(bytes)).expect("packed");
            check(&encoder.finish().expect("packed"));
        });
    }

    /// Unpacks an archive; only the files of a backup are left, and only if it is whole.
    fn tried(place: &Path, archive: &Path) -> Option<Manifest> {
        let folder = place.join("unpacked");
        std::fs::create_dir(&folder).expect("made");
        let unpacked = Unpacked::unpack(archive, &folder);
        let left: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().collect();
        for file in left {
            let name = file.file_name().into_string().expect("UTF-8");
            assert!(
                [Engine::Sqlite.file(), Engine::Postgresql.file(), KEYS].contains(&name.as_str())
            );
            assert!(file.file_type().expect("a type").is_file(), "{name}");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
        let names: Vec<_> = std::fs::read_dir(place).expect("a folder").flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        unpacked.ok()
    }

    #[tokio::test]
    async fn a_forged_archive_writes_nothing_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["../escaped", "/tmp/signalbox-escaped", "other", "database.sqlite/x"] {
            let sha256 = HEXLOWER.encode(&Sha256::digest(b"x"));
            let manifest = format!(
                r#"{{"format":1,"version":"0","created_at":"","engine":"sqlite","migrations":[],
                "webhook_key":null,"files":[{{"name":"{name}","bytes":1,"sha256":"{sha256}"}}]}}"#
            );
            let archive = forged(folder.path(), &[(MANIFEST, manifest.as_bytes()), (name, b"x")]);
            assert!(refusal(&archive).await.contains("unexpected file"), "{name}");
        }
        assert!(!folder.path().join("escaped").exists());
        let newer = r#"{"format":2,"version":"9.1.0","created_at":"","engine":"sqlite",
            "migrations":[],"webhook_key":null,"files":[]}"#;
        let archive = forged(folder.path(), &[(MANIFEST, newer.as_bytes())]);
        assert!(refusal(&archive).await.contains("Signalbox 9.1.0, which is newer"));
        let archive = forged(folder.path(), &[(MANIFEST, b"{}")]);
        assert!(refusal(&archive).await.contains("damaged: manifest.json"));
    }
}
