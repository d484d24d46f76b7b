//! The folder in which a check runs: a clean checkout, removed afterwards.

use std::path::{Path, PathBuf};

use signalbox_domain::ports::HostError;

use crate::git::Git;

pub(crate) fn unavailable(folder: &Path, error: &std::io::Error) -> HostError {
    HostError::Unavailable { words: format!("{}: {error}", folder.display()) }
}
/// A folder that is empty to begin with and removed in the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> std::io::Result<Self> {
        if path.exists() {
            std::fs::remove_dir_all(path)?;
        }
        for inner in ["home", "tmp", "checkout"] {
            std::fs::create_dir_all(path.join(inner))?;
        }
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a checkout stays behind");
        }
    }
}

/// Why a commit was not checked out.
pub(crate) enum NotCheckedOut {
    /// Its content cannot be put into any folder; in git's words.
    Content(String),
    /// Something else, which says nothing about the commit.
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
