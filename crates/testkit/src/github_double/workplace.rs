//! A double with a place to make commits for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::queue::Change;
use tempfile::TempDir;

use super::{GitHubDouble, check_requests};

/// A double of a host with the repository `acme/calc`, and a clone in which commits are made. When
/// it is dropped, every request that was made is held against the host's description.
pub struct Workplace {
    folder: TempDir,
    /// The host.
    pub double: GitHubDouble,
}

fn git_in(folder: &Path, args: &[&str]) -> Output {
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

impl Workplace {
    /// An empty repository, for the holder of that token.
    pub fn new(token: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let double = GitHubDouble::start(&folder.path().join("bare.git"), "acme", "calc", token);
        let place = Self { folder, double };
        std::fs::create_dir(place.work()).expect("a folder");
        place.git(&["init", "-q"]);
        place
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Calls git in the clone.
    pub fn git(&self, args: &[&str]) -> String {
        text(args, &git_in(&self.work(), args))
    }

    /// Calls git in the host's repository.
    pub fn bare(&self, args: &[&str]) -> String {
        text(args, &git_in(&self.folder.path().join("bare.git"), args))
    }

    /// Writes files and commits them.
    pub fn commit(&self, files: &[(&str, &str)], title: &str) {
        for (name, text) in files {
            let path = self.work().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", title]);
    }

    /// Pushes a branch, by force.
    pub fn push(&self, branch: &str) -> Sha {
        let bare = self.folder.path().join("bare.git").display().to_string();
        self.git(&["push", "-q", "-f", &bare, branch]);
        self.double.pushed(branch);
        Sha::new(self.git(&["rev-parse", branch])).expect("a commit")
    }

    /// A branch on `from` with one commit; pushed.
    pub fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> Sha {
        self.git(&["checkout", "-q", "-B", name, from]);
        self.commit(files, &format!("change {name}"));
        self.push(name)
    }

    /// A pull request from a new branch.
    pub fn open(&self, name: &str, files: &[(&str, &str)]) -> Change {
        let head = self.branch(name, "main", files);
        let number = self.double.open(name, "main", &format!("change {name}"));
        let number = u32::try_from(number).expect("small");
        Change {
            pr: PrNumber(number),
            head,
            title: format!("change {number}"),
            body: String::new(),
            author: "ada".into(),
        }
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            check_requests(&self.double.log());
        }
    }
}
