//! Git commands in a bare repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::{Head, HostError};

/// A bare repository. Calls block: an adapter for a server would run git in separate tasks.
pub(super) struct Git {
    pub(super) folder: PathBuf,
}

fn unavailable(words: &impl ToString) -> HostError {
    HostError::Unavailable { words: words.to_string() }
}

pub(super) fn sha(text: &str) -> Result<Sha, HostError> {
    Sha::new(text).map_err(|error| unavailable(&error))
}

impl Git {
    /// Opens the repository in a folder; [`HostError::NotFound`] if there is none.
    pub(super) fn open(folder: PathBuf) -> Result<Self, HostError> {
        let git = Self { folder };
        let is_there = git.folder.is_dir() && git.find(&["rev-parse", "--git-dir"])?.is_some();
        let what = || format!("repository {}", git.folder.display());
        if is_there { Ok(git) } else { Err(HostError::NotFound { what: what() }) }
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Folder host", "-c", "user.email=host@folder.test", "-C"])
            .arg(&self.folder)
            .args(args);
        command
    }

    fn call(&self, args: &[&str]) -> Result<Output, HostError> {
        self.command(args).output().map_err(|error| unavailable(&error))
    }

    /// The output of git; a failure counts as an unavailable host.
    pub(super) fn text(&self, args: &[&str]) -> Result<String, HostError> {
        printed(&self.call(args)?)
    }

    /// The output of git, or `None` if the object does not exist.
    pub(super) fn find(&self, args: &[&str]) -> Result<Option<String>, HostError> {
        let done = self.call(args)?;
        if done.status.success() { printed(&done).map(Some) } else { Ok(None) }
    }

    pub(super) fn tip(&self, name: &str) -> Result<Option<Sha>, HostError> {
        let found = self.find(&["rev-parse", "--verify", "-q", &format!("{name}^{{commit}}")])?;
        found.map(|text| sha(&text)).transpose()
    }

    pub(super) fn tree(&self, commit: &Sha) -> Result<TreeId, HostError> {
        let tree = self.text(&["rev-parse", &format!("{commit}^{{tree}}")])?;
        TreeId::new(tree).map_err(|error| unavailable(&error))
    }

    pub(super) fn head(&self, commit: Sha) -> Result<Head, HostError> {
        let tree = self.tree(&commit)?;
        Ok(Head { sha: commit, tree })
    }

    pub(super) fn is_ancestor(&self, ancestor: &Sha, of: &Sha) -> Result<bool, HostError> {
        let args = ["merge-base", "--is-ancestor", ancestor.as_str(), of.as_str()];
        Ok(self.find(&args)?.is_some())
    }

    /// The tree of a merge, or the paths that conflict.
    pub(super) fn merge(
        &self,
        base: Option<&str>,
        ours: &Sha,
        theirs: &Sha,
    ) -> Result<Result<TreeId, Vec<String>>, HostError> {
        let base = base.map(|base| format!("--merge-base={base}"));
        let mut args = vec!["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"];
        args.extend(base.as_deref());
        args.extend([ours.as_str(), theirs.as_str()]);
        let done = self.call(&args)?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        let tree =
            parts.next().map(|tree| TreeId::new(tree.trim()).map_err(|error| unavailable(&error)));
        match (done.status.code(), tree) {
            (Some(0), Some(tree)) => Ok(Ok(tree?)),
            (Some(1), Some(_)) => {
                let cut = |path: &str| path.chars().take(256).collect();
                let mut paths: Vec<String> = parts.map(cut).collect();
                paths.dedup();
                paths.truncate(100);
                Ok(Err(paths))
            }
            _ => Err(unavailable(&String::from_utf8_lossy(&done.stderr))),
        }
    }

    /// Creates a commit with the author of another one.
    pub(super) fn commit(
        &self,
        tree: &TreeId,
        parents: &[&Sha],
        message: &str,
        author_of: &Sha,
    ) -> Result<Sha, HostError> {
        let format = ["show", "-s", "--format=%an%n%ae%n%aI", author_of.as_str()];
        let author = self.text(&format)?;
        let mut args = vec!["commit-tree", tree.as_str(), "-m", message];
        for parent in parents {
            args.extend(["-p", parent.as_str()]);
        }
        let mut command = self.command(&args);
        let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];
        command.envs(names.into_iter().zip(author.lines()));
        sha(&printed(&command.output().map_err(|error| unavailable(&error))?)?)
    }

    /// Moves a ref by compare-and-swap; `false` if it is not at `from`.
    pub(super) fn move_ref(&self, name: &str, to: &Sha, from: &Sha) -> Result<bool, HostError> {
        Ok(self.find(&["update-ref", name, to.as_str(), from.as_str()])?.is_some())
    }

    /// Writes the files of a commit into an empty folder.
    pub(super) fn check_out(&self, commit: &Sha, folder: &Path) -> Result<(), HostError> {
        let mut command = self.command(&["read-tree", "-u", "--reset", commit.as_str()]);
        let index = folder.with_extension("index");
        command.env("GIT_WORK_TREE", folder).env("GIT_INDEX_FILE", index);
        printed(&command.output().map_err(|error| unavailable(&error))?).map(drop)
    }
}

fn printed(done: &Output) -> Result<String, HostError> {
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
    } else {
        Err(unavailable(&String::from_utf8_lossy(&done.stderr)))
    }
}
