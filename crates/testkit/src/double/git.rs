//! Git, in the bare repository behind a double.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A bare repository in which the host itself creates commits.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    pub(crate) folder: PathBuf,
    /// The host as an author: a name and an address.
    host: (&'static str, &'static str),
}

impl Git {
    pub(crate) fn init(folder: &Path, host: (&'static str, &'static str)) -> Self {
        std::fs::create_dir_all(folder).expect("a folder");
        let git = Self { folder: folder.to_owned(), host };
        git.must(&["init", "-q", "--bare"]);
        git
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", self.host.0)
            .env("GIT_AUTHOR_EMAIL", self.host.1)
            .env("GIT_COMMITTER_NAME", self.host.0)
            .env("GIT_COMMITTER_EMAIL", self.host.1)
            .args(["-c", "init.defaultBranch=main", "-C"])
            .arg(&self.folder)
            .args(args);
        command
    }

    /// Runs git and returns its trimmed output; `None` if it failed.
    pub(crate) fn ask(&self, args: &[&str]) -> Option<String> {
        let done = self.command(args).output().expect("git can be run");
        let text = String::from_utf8_lossy(&done.stdout).trim_end().to_owned();
        done.status.success().then_some(text)
    }

    pub(crate) fn must(&self, args: &[&str]) -> String {
        self.ask(args).unwrap_or_else(|| panic!("git {args:?} failed"))
    }

    /// Resolves a name to an object id.
    pub(crate) fn resolve(&self, name: &str) -> Option<String> {
        self.ask(&["rev-parse", "--verify", "-q", name])
    }

    /// The head of a branch.
    pub(crate) fn branch(&self, name: &str) -> Option<String> {
        self.resolve(&format!("refs/heads/{name}"))
    }

    /// Resolves an object id or a branch name to a commit.
    pub(crate) fn commit(&self, name: &str) -> Option<String> {
        self.branch(name).or_else(|| self.resolve(&format!("{name}^{{commit}}")))
    }

    pub(crate) fn tree(&self, commit: &str) -> String {
        self.must(&["rev-parse", &format!("{commit}^{{tree}}")])
    }

    pub(crate) fn is_ancestor(&self, ancestor: &str, of: &str) -> bool {
        self.ask(&["merge-base", "--is-ancestor", ancestor, of]).is_some()
    }

    /// The tree of a clean merge; `None` for a conflict.
    pub(crate) fn merged_tree(&self, ours: &str, theirs: &str) -> Option<String> {
        let args = ["merge-tree", "--write-tree", "--no-messages", ours, theirs];
        self.ask(&args).map(|text| text.lines().next().unwrap_or_default().to_owned())
    }

    /// A tree without one of its files.
    pub(crate) fn without(&self, tree: &str, path: &str) -> String {
        let index = self.folder.join("index-of-a-wrong-merge");
        let git = |args: &[&str]| {
            let done =
                self.command(args).env("GIT_INDEX_FILE", &index).env("GIT_WORK_TREE", ".").output();
            let done = done.expect("git can be run");
            assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
        };
        git(&["read-tree", tree]);
        git(&["update-index", "--force-remove", "--", path]);
        git(&["write-tree"])
    }

    /// Creates a commit; an author is a name, an address and, if known, a time.
    pub(crate) fn commit_tree(
        &self,
        tree: &str,
        parents: &[String],
        message: &str,
        author: Option<(&str, &str, Option<&str>)>,
    ) -> Option<String> {
        let mut args = vec!["commit-tree", tree, "-m", message];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        let mut command = self.command(&args);
        if let Some((name, address, date)) = author {
            command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", address);
            if let Some(date) = date {
                command.env("GIT_AUTHOR_DATE", date);
            }
        }
        let done = command.output().expect("git can be run");
        let text = String::from_utf8_lossy(&done.stdout).trim_end().to_owned();
        done.status.success().then_some(text)
    }

    pub(crate) fn set_ref(&self, name: &str, to: &str) {
        self.must(&["update-ref", name, to]);
    }
}
