//! The folder in which a check runs: a clean checkout, removed afterwards.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use signalbox_domain::ports::HostError;
use tokio::task::spawn_blocking;

use crate::git::Git;
use crate::leftovers;

pub(crate) fn unavailable(folder: &Path, error: &std::io::Error) -> HostError {
    HostError::Unavailable { words: format!("{}: {error}", folder.display()) }
}

/// A folder that is empty to begin with and removed in the end, with the processes that are marked
/// with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        if path.exists() {
            remove(path)?;
        }
        for inner in ["home", "tmp", "checkout"] {
            fs::create_dir_all(path.join(inner))?;
        }
        Ok(Self(path.to_owned()))
    }

    /// Ends the remaining processes of the check, and removes the folder. Dropping it does the same
    /// without waiting.
    pub(crate) async fn clear(self) {
        drop(spawn_blocking(move || drop(self)).await);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

/// Ends the processes that are marked with a folder or one below it, and removes it.
pub(crate) fn clear(folder: &Path) {
    let left = leftovers::kill_marked(folder);
    if left > 0 {
        tracing::warn!(folder = %folder.display(), left, "could not end the processes of a check");
    }
    if let Err(error) = remove(folder) {
        tracing::warn!(folder = %folder.display(), %error, "could not remove a checkout");
    }
}

/// Removes a folder with all that is in it, also where a check has taken our own permissions away,
/// as caches of packages do. Links are removed, never followed.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        done @ (Ok(()) | Err(_)) => return done,
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(folder)
}

/// Why a commit was not checked out.
pub(crate) enum NotCheckedOut {
    /// Its content cannot be put into any folder; in git's words.
    Content(String),
    /// Another error, which is not the commit's fault.
    Host(HostError),
}

impl From<HostError> for NotCheckedOut {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// Checks a commit out into an empty folder, as a repository of its own: it borrows the objects,
/// and has no refs, hooks or settings of the other.
pub(crate) async fn check_out(git: &Git, folder: &Path, sha: &str) -> Result<(), NotCheckedOut> {
    let own = folder.join(".git");
    let new = Git::at(own.clone());
    new.ok(&["init", "-q", "--template=", "--", &folder.to_string_lossy()]).await?;
    let objects = git.dir().canonicalize().map_err(|error| unavailable(git.dir(), &error))?;
    let info = own.join("objects").join("info");
    let borrowed = format!("{}\n", objects.join("objects").display());
    std::fs::create_dir_all(&info)
        .and_then(|()| std::fs::write(info.join("alternates"), borrowed))
        .map_err(|error| unavailable(&info, &error))?;
    let folder = folder.to_string_lossy();
    let args = ["--work-tree", &folder, "checkout", "-q", "--detach", "--force", sha, "--"];
    let done = new.call(&args).await?;
    if done.cannot_be_checked_out() {
        return Err(NotCheckedOut::Content(done.words()));
    }
    done.succeeded().map(drop).map_err(NotCheckedOut::Host)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::process::Command;

    use super::*;

    const UNPRIVILEGED: u32 = 65_534;
    const FOLDER: &str = "SIGNALBOX_TEST_READ_ONLY_FOLDER";

    /// Permissions mean nothing to root, so that the test calls itself as another user there.
    #[test]
    fn folders_without_permissions_are_removed() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            return read_only_folders_are_removed(Path::new(&folder));
        }
        let place = tempfile::TempDir::new().expect("a folder");
        if !rustix::process::geteuid().is_root() {
            return read_only_folders_are_removed(place.path());
        }
        chown(place.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("changed owner");
        let own = std::env::current_exe().expect("this test");
        let run = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(own)
            .args(["--exact", "checkout::tests::folders_without_permissions_are_removed"])
            .env(FOLDER, place.path())
            .output()
            .expect("setpriv can be run");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && said.contains("1 passed"), "{run:?}");
    }

    fn read_only_folders_are_removed(place: &Path) {
        let outside = place.join("outside");
        fs::create_dir_all(&outside).expect("made");
        fs::write(outside.join("kept"), "kept").expect("written");
        fs::set_permissions(&outside, Permissions::from_mode(0o500)).expect("set");
        let folder = place.join("check");
        let cache = folder.join("home").join("go").join("pkg").join("mod");
        fs::create_dir_all(&cache).expect("made");
        fs::write(cache.join("file.go"), "package x").expect("written");
        symlink(&outside, cache.join("link")).expect("a link");
        for (path, mode) in [(&cache, 0o500), (&folder.join("home"), 0o000)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        }
        assert!(fs::remove_dir_all(&folder).is_err(), "as it is it cannot be removed");
        remove(&folder).expect("removed");
        assert!(!folder.exists());
        assert!(outside.join("kept").exists(), "links are not followed");
        let mode = fs::metadata(&outside).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o500, "nothing outside is touched");
        remove(&folder).expect("nothing to remove");
    }
}
