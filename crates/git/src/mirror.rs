//! Mirrors: bare repositories with the commits of other hosts. Each has a lock beside it, and is
//! made again when it is missing, damaged or too large.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use signalbox_domain::ports::HostError;
use signalbox_domain::time::{Span, Timestamp};
use tokio::task::spawn_blocking;

use crate::git::Git;
use crate::locks::written;

/// How long a check waits for others with the same mirror.
const LONGEST_WAIT: Duration = Duration::from_mins(15);
/// How often the lock of another process is tried.
const TRIED_EVERY: Duration = Duration::from_millis(100);
/// The refs of commits that the host need not send again.
const SEEN: &str = "refs/seen/";
/// The most such refs, and how many of them remain when there are more.
const MOST_SEEN: (usize, usize) = (64, 32);
/// The days after which an unused mirror is removed.
const UNUSED_DAYS: u32 = 30;

/// The bounds of a mirror.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest that one fetch may take; default: 10 min.
    pub time: Duration,
    /// The most bytes of a mirror; default: 20 GiB.
    pub bytes: u64,
    /// The most files of a mirror, because each check adds a few: with more, it is made again.
    /// Default: 10,000.
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_mins(10), bytes: 20 << 30, files: 10_000 }
    }
}

/// The size of a folder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// Measures a folder. What cannot be read, or is removed meanwhile, does not count.
pub(crate) async fn measured(folder: &Path) -> Measured {
    let folder = folder.to_owned();
    spawn_blocking(move || measure(folder)).await.unwrap_or_default()
}

fn measure(folder: PathBuf) -> Measured {
    let (mut found, mut folders) = (Measured::default(), vec![folder]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(about) if about.is_dir() => folders.push(entry.path()),
                Ok(about) => {
                    found.files += 1;
                    found.bytes += about.len();
                }
                Err(_) => {}
            }
        }
    }
    found
}

/// A mirror that no other task or process uses. The lock is released when it is dropped.
pub(crate) struct Mirror {
    folder: PathBuf,
    _lock: File,
}

impl Mirror {
    /// Waits for the mirror in a folder.
    pub(crate) async fn lock(folder: &Path) -> Result<Self, HostError> {
        let path = folder.with_extension("lock");
        let lock = blocking(&path, |path| {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            let lock = File::options().create(true).write(true).truncate(false).open(path)?;
            Ok(lock)
        });
        let lock = lock.await?;
        let waiting = tokio::time::timeout(LONGEST_WAIT, acquired(&lock)).await;
        waiting
            .map_err(|_| unavailable("wait for", &path, &"another check uses the mirror"))?
            .map_err(|error| unavailable("lock", &path, &error))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Creates the mirror if it is missing, and again if it is too large.
    pub(crate) async fn prepare(
        &self,
        is_sha256: bool,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<(), HostError> {
        self.touch(now).await?;
        if self.folder.is_dir() {
            let size = measured(&self.folder).await;
            if size.files <= limits.files && size.bytes <= limits.bytes {
                return blocking(&self.folder, unfinished).await;
            }
            tracing::info!(mirror = %self.folder.display(), files = size.files, bytes = size.bytes,
                "a mirror is too large and is made again");
            self.remove().await?;
        }
        self.sweep(now).await;
        self.create(is_sha256).await
    }

    async fn create(&self, is_sha256: bool) -> Result<(), HostError> {
        let new = self.folder.with_extension("new");
        blocking(&new, remove).await?;
        let format = if is_sha256 { "sha256" } else { "sha1" };
        let git = Git::at(new.clone());
        git.ok(&["init", "--quiet", "--template=", &format!("--object-format={format}")]).await?;
        // Without contents of files, and only for git with the extension of partial clones.
        for (key, value) in [
            ("core.bare", "true"),
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
        ] {
            git.ok(&["config", key, value]).await?;
        }
        let folder = self.folder.clone();
        blocking(&new, move |new| {
            private(new)?;
            fs::rename(new, &folder)
        })
        .await
    }

    /// Removes the mirror.
    pub(crate) async fn remove(&self) -> Result<(), HostError> {
        blocking(&self.folder, remove).await
    }

    /// Keeps commits as what the host need not send again.
    pub(crate) async fn remember(&self, git: &Git, commits: &[&str]) -> Result<(), HostError> {
        let mut orders = String::new();
        for commit in commits {
            orders.push_str(&["update ", SEEN, commit, " ", commit, "\n"].concat());
        }
        let listed = git.ok(&["for-each-ref", "--sort=committerdate", "--format=%(refname)", SEEN]);
        let listed = listed.await?.text();
        let seen: Vec<&str> = listed.lines().collect();
        let (most, kept) = MOST_SEEN;
        if seen.len() > most {
            let old = seen.iter().take(seen.len() - kept);
            let old = old.filter(|name| !commits.iter().any(|commit| name.ends_with(commit)));
            old.for_each(|name| orders.push_str(&["delete ", *name, "\n"].concat()));
        }
        git.call_with(&["update-ref", "--stdin"], &orders).await?.succeeded()?;
        Ok(())
    }

    /// Notes that the mirror is used.
    async fn touch(&self, now: Timestamp) -> Result<(), HostError> {
        let micros = u64::try_from(now.unix_micros()).unwrap_or_default();
        let at = std::time::UNIX_EPOCH + Duration::from_micros(micros);
        blocking(&self.folder.with_extension("lock"), move |path| {
            File::options().write(true).open(path)?.set_modified(at)
        })
        .await
    }

    /// Removes the mirrors beside this one that were not used for a long time.
    async fn sweep(&self, now: Timestamp) {
        let Some(beside) = self.folder.parent() else { return };
        let swept = blocking(beside, move |beside| {
            for entry in fs::read_dir(beside)?.flatten() {
                let path = entry.path();
                let is_lock = path.extension().is_some_and(|end| end == "lock");
                let age = written(&path).filter(|_| is_lock).map(|at| now.since(at));
                if age.is_some_and(|age| age >= Span::days(UNUSED_DAYS)) {
                    let lock = File::options().write(true).open(&path)?;
                    if lock.try_lock().is_ok() {
                        remove(&path.with_extension("git"))?;
                    }
                }
            }
            Ok(())
        });
        if let Err(error) = swept.await {
            tracing::warn!(%error, "could not remove unused mirrors");
        }
    }
}

/// Waits for a lock. Tasks of this process hold locks through files of their own, so that they
/// wait for each other as well.
async fn acquired(lock: &File) -> io::Result<()> {
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(TRIED_EVERY).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes what a fetch has left that was killed.
fn unfinished(mirror: &Path) -> io::Result<()> {
    for entry in fs::read_dir(mirror.join("objects/pack")).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("tmp_") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Hides a folder from other users.
fn private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// Removes a folder, or a file in its place, if there is one.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// Uses the disk on a thread that may block.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, HostError> {
    let of = path.to_owned();
    let done = spawn_blocking(move || work(&of)).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|error| unavailable("use", path, &error))
}

fn unavailable(what: &str, path: &Path, why: &dyn std::fmt::Display) -> HostError {
    HostError::Unavailable { words: format!("could not {what} {}: {why}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Author;

    /// The tree without files.
    const EMPTY: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    #[tokio::test]
    async fn a_mirror_has_one_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("acme/calc.git");
        let mirror = Mirror::lock(&path).await.expect("free");
        let other = File::open(path.with_extension("lock")).expect("a lock");
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(mirror);
        other.try_lock().expect("free");
    }

    #[tokio::test]
    async fn the_commits_that_are_remembered_are_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("acme/calc.git");
        let mirror = Mirror::lock(&path).await.expect("free");
        let now = Timestamp::from_unix_seconds(1_700_000_000);
        mirror.prepare(false, &Limits::default(), now).await.expect("created");
        let git = Git::at(path);
        git.call_with(&["hash-object", "-w", "-t", "tree", "--stdin"], "").await.expect("a tree");
        let author = Author { name: "Ada".into(), email: "ada@example.org".into(), date: None };
        let mut last = String::new();
        for number in 0..80 {
            let at = now.plus(Span::seconds(number));
            last = git.commit_tree(EMPTY, &[], "x\n", &author, at).await.expect("a commit");
            mirror.remember(&git, &[&last]).await.expect("remembered");
        }
        let seen = git.ok(&["for-each-ref", "--format=%(refname)", SEEN]).await.expect("refs");
        let count = seen.text().lines().count();
        assert!((MOST_SEEN.1..=MOST_SEEN.0 + 1).contains(&count), "{count}");
        assert!(seen.text().contains(&last), "the newest is kept");
    }
}
