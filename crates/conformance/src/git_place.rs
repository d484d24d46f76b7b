//! A bare repository and a clone of it in which commits are made.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use signalbox_domain::ids::Sha;
use tempfile::TempDir;

/// A folder with a bare repository and a clone. It is removed when it is dropped.
pub struct GitPlace {
    folder: TempDir,
    bare: &'static str,
}

/// Runs git in a folder, without any user's configuration, as the author Ada.
pub fn git_in(folder: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "init.defaultBranch=main", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("git can be run")
}

fn text(args: &[&str], done: &Output) -> String {
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

impl GitPlace {
    /// Creates an empty clone, and an empty folder at `bare`, where the host under test initializes
    /// the bare repository.
    pub fn new(bare: &'static str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let place = Self { folder, bare };
        std::fs::create_dir(place.clone_folder()).expect("a folder");
        std::fs::create_dir_all(place.bare_folder()).expect("a folder");
        place.git(&["init", "-q"]);
        place
    }

    /// The folder that contains both.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The clone.
    pub fn clone_folder(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The bare repository.
    pub fn bare_folder(&self) -> PathBuf {
        self.folder.path().join(self.bare)
    }

    /// Runs git in the clone and returns its output.
    pub fn git(&self, args: &[&str]) -> String {
        text(args, &git_in(&self.clone_folder(), args))
    }

    /// Runs git in the bare repository and returns its output.
    pub fn bare(&self, args: &[&str]) -> String {
        text(args, &git_in(&self.bare_folder(), args))
    }

    /// The tree of a commit of the bare repository.
    pub fn tree(&self, commit: &Sha) -> String {
        self.bare(&["rev-parse", &format!("{commit}^{{tree}}")])
    }

    /// Writes files and commits them.
    pub fn commit(&self, files: &[(&str, &str)], title: &str) {
        for (name, text) in files {
            let path = self.clone_folder().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", title]);
    }

    /// Pushes a branch, by force.
    pub fn push(&self, branch: &str) -> Sha {
        let bare = self.bare_folder().display().to_string();
        self.git(&["push", "-q", "-f", &bare, branch]);
        Sha::new(self.git(&["rev-parse", branch])).expect("a commit")
    }

    /// Creates a branch with one commit on `from`, without pushing it.
    pub fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) {
        self.git(&["checkout", "-q", "-B", name, from]);
        self.commit(files, &format!("change {name}"));
    }
}
