//! The checkout of a candidate, as a repository of its own.

use std::io::Write as _;
use std::path::Path;

use signalbox_domain::ports::HostError;

use crate::git::Git;

/// What answers a fetch. The configuration of a user is not read, so that it needs these: the
/// repository may belong to another user, and a candidate may have no branch any more.
const UPLOAD_PACK: &str =
    "git -c 'safe.directory=*' -c uploadpack.allowAnySHA1InWant=true upload-pack";

/// The most bytes of the paths of a checkout.
const MAX_PATHS: usize = 64 * 1024 * 1024;

pub(crate) fn unavailable(folder: &Path, error: &std::io::Error) -> HostError {
    HostError::Unavailable { words: format!("{}: {error}", folder.display()) }
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

/// Checks a commit out into an empty folder, as a repository of its own: with copies of so many
/// commits (0: of all), and with none of the refs, hooks and settings of the other.
pub(crate) async fn check_out(
    git: &Git,
    folder: &Path,
    sha: &str,
    depth: u32,
) -> Result<(), NotCheckedOut> {
    let new = Git::at(folder.join(".git"));
    let shown = folder.to_string_lossy();
    new.ok(&["init", "-q", "--template=", "--", &shown]).await?;
    // The files are given to another user, or sent to an agent, which changes all that git compares but
    // their sizes and times.
    let config = folder.join(".git/config");
    let written = std::fs::OpenOptions::new().append(true).open(&config).and_then(|mut file| {
        file.write_all(b"[core]\n\tcheckStat = minimal\n\ttrustctime = false\n")
    });
    written.map_err(|error| unavailable(&config, &error))?;
    let from = git.dir().canonicalize().map_err(|error| unavailable(git.dir(), &error))?;
    let (from, depth_flag) = (from.to_string_lossy().into_owned(), format!("--depth={depth}"));
    let mut fetch = vec!["-c", "maintenance.auto=false", "fetch", "-q", "--no-tags"];
    fetch.extend(["--no-write-fetch-head", "--upload-pack", UPLOAD_PACK]);
    fetch.extend((depth > 0).then_some(depth_flag.as_str()));
    fetch.extend(["--", &from, sha]);
    new.ok(&fetch).await?;
    // A few objects can be very many files, for which git needs memory before it writes the first one.
    let paths = ["ls-tree", "-r", "-z", "--name-only", sha];
    if new.ok_up_to(&paths, MAX_PATHS).await?.is_none() {
        let words = format!("the paths of its files have more than {MAX_PATHS} bytes");
        return Err(NotCheckedOut::Content(words));
    }
    let args = ["--work-tree", &shown, "checkout", "-q", "--detach", "--force", sha, "--"];
    let done = match new.call_with_content(&args).await {
        Err(HostError::Rejected { words }) => return Err(NotCheckedOut::Content(words)),
        done => done?,
    };
    if done.cannot_be_checked_out() {
        return Err(NotCheckedOut::Content(done.words()));
    }
    done.succeeded().map(drop).map_err(NotCheckedOut::Host)
}
