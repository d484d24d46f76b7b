//! The folder in which a check runs: made for it, and removed afterwards.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::task::spawn_blocking;

use crate::leftovers;

/// What a check can write to.
const WRITABLE: [&str; 3] = ["checkout", "home", "tmp"];

/// A folder that is empty to begin with and removed in the end, with the processes that are marked
/// with it. Other users of the machine cannot look into it.
#[derive(Debug)]
pub struct JobFolder(PathBuf);

impl JobFolder {
    /// Makes the folder, with `checkout`, `home` and `tmp` in it. What was there is removed.
    pub fn new(path: &Path) -> io::Result<Self> {
        if path.exists() {
            remove(path)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        for inner in WRITABLE {
            // Under root, what enters it for a check has no rights to the folders of other users.
            DirBuilder::new().mode(0o755).create(path.join(inner))?;
        }
        Ok(Self(path.to_owned()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The working directory of the check.
    pub fn checkout(&self) -> PathBuf {
        self.0.join("checkout")
    }

    /// Ends the remaining processes of the check, and removes the folder. Dropping it does the same
    /// without waiting.
    pub async fn clear(self) {
        drop(spawn_blocking(move || drop(self)).await);
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

/// Ends the processes that are marked with a folder or one below it, and removes it.
pub fn clear(folder: &Path) {
    let left = leftovers::kill_marked(folder);
    if left > 0 {
        tracing::warn!(folder = %folder.display(), left, "could not end the processes of a check");
    }
    if let Err(error) = remove(folder) {
        tracing::warn!(folder = %folder.display(), %error, "could not remove a checkout");
    }
}

/// Ends what a crashed server has left running in a folder of jobs, and removes what is in it.
pub(crate) fn clear_jobs(folder: &Path) {
    let left = leftovers::kill_marked(folder);
    if left > 0 {
        tracing::warn!(left, "could not end the left-over check processes of an earlier server");
    }
    let Ok(jobs) = fs::read_dir(folder) else { return };
    for job in jobs.flatten() {
        clear(&job.path());
    }
}

/// Gives everything that a check can write to that user and group. Links are changed, never
/// followed. Nothing of the check runs yet.
pub(crate) fn hand_over(folder: &Path, user: u32) -> io::Result<()> {
    let mut waiting: Vec<PathBuf> = WRITABLE.map(|inner| folder.join(inner)).to_vec();
    while let Some(path) = waiting.pop() {
        lchown(&path, Some(user), Some(user))?;
        if fs::symlink_metadata(&path)?.is_dir() {
            for entry in fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
    }
    Ok(())
}

/// Removes a folder with all that is in it, also where a check has taken our own permissions away,
/// as caches of packages do. Links are removed, never followed.
///
/// Programs of the system do it: folders may be nested deeper than paths can be long, and than a
/// recursive function has room for.
fn remove(folder: &Path) -> io::Result<()> {
    if !fs::exists(folder)? {
        return Ok(());
    }
    let delete = || run("rm", &["-rf", "--"], folder);
    delete().or_else(|_| {
        // Where it fails, so does the next one.
        let _incomplete = run("chmod", &["-R", "u+rwX", "--"], folder);
        delete()
    })
}

fn run(program: &str, options: &[&str], folder: &Path) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let mut command = Command::new(program);
    command.args(options).arg(folder).current_dir("/").stdin(Stdio::null());
    let done = command.output()?;
    if done.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&done.stderr);
    Err(io::Error::other(words.lines().next().unwrap_or("could not be removed").to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

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
            .args(["--exact", "folder::tests::folders_without_permissions_are_removed"])
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

    #[test]
    fn folders_that_are_nested_deeper_than_a_path_is_long_are_removed() {
        let place = tempfile::TempDir::new().expect("a folder");
        let folder = place.path().join("check");
        fs::create_dir(&folder).expect("made");
        let deep = "for (1..30000) { mkdir 'd' or die; chdir 'd' or die; }";
        let made = Command::new("perl").args(["-e", deep]).current_dir(&folder).status();
        assert!(made.expect("perl can be run").success());
        remove(&folder).expect("removed");
        assert!(!folder.exists());
    }
}
