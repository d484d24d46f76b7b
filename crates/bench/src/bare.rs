//! A bare repository with many branches.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use signalbox_domain::ids::{OrgId, RepoId, RepoName};
use signalbox_domain::ports::{Clock, IdSource, Repository};

use crate::failure::{During, Failure};
use crate::parts::{RandomIds, SystemClock};

/// Files in a folder.
const FOLDER: usize = 100;
/// What the target branch says about its checks.
const CHECK: &str = "[[checks]]\nname = \"test\"\nrun = [\"true\"]\ntimeout_minutes = 5\n";

/// A bare repository whose branches each change a file of their own.
pub(crate) struct Repo {
    path: PathBuf,
    /// The head of the target.
    pub(crate) main: String,
    /// The heads of the branches.
    pub(crate) heads: Vec<String>,
}

impl Repo {
    /// A new one. Its check is a program that only succeeds.
    pub(crate) fn new(folder: &Path, files: usize, branches: usize) -> Result<Self, Failure> {
        let path = folder.join("bare.git");
        let bare = Self { path, main: String::new(), heads: Vec::new() };
        std::fs::create_dir_all(&bare.path).during("a repository")?;
        bare.git(&["init", "-q", "--bare", "-b", "main"], None)?;
        bare.git(&["fast-import", "--quiet"], Some(&history(files, branches)))?;
        let main = bare.git(&["rev-parse", "main"], None)?;
        let heads: Result<Vec<String>, Failure> = (0..branches)
            .map(|number| bare.git(&["rev-parse", &format!("change-{number}")], None))
            .collect();
        Ok(Self { main, heads: heads?, ..bare })
    }

    /// As an organization has registered it.
    pub(crate) fn registered(&self, org: OrgId) -> Result<Repository, Failure> {
        Ok(Repository {
            id: RepoId(RandomIds.new_id()),
            org,
            name: RepoName::parse("git.local/acme/calc").during("a repository")?,
            path: Some(self.path.display().to_string()),
            created_at: SystemClock.now(),
        })
    }

    /// Calls git in the repository; returns its output.
    pub(crate) fn git(&self, args: &[&str], input: Option<&str>) -> Result<String, Failure> {
        let mut child = Command::new("git")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "--git-dir"])
            .arg(&self.path)
            .args(args)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .during("git")?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.as_bytes()).during("git")?;
        }
        let done = child.wait_with_output().during("git")?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned());
        }
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        Err(Failure::new(&format!("git {}", args.join(" ")), words))
    }
}

/// The repository as a stream for `git fast-import`.
fn history(files: usize, branches: usize) -> String {
    let mut text = String::new();
    let path = |file: usize| format!("folder-{}/file-{file}", file / FOLDER);
    let mut commit =
        |branch: &str, from: Option<&str>, files: &mut dyn Iterator<Item = (String, String)>| {
            let _ = write!(
                text,
                "commit refs/heads/{branch}\ncommitter Ada <ada@example.org> 1767225600 +0000\n\
             data 6\nchange\n"
            );
            if let Some(from) = from {
                let _ = writeln!(text, "from {from}");
            }
            for (path, content) in files {
                let length = content.len();
                let _ = writeln!(text, "M 100644 inline {path}\ndata {length}\n{content}");
            }
            text.push('\n');
        };
    let content = |file: usize| format!("first line of {file}\nmiddle\nlast line\n");
    let rules = (".signalbox.toml".to_owned(), CHECK.to_owned());
    let contents = (0..files).map(|file| (path(file), content(file)));
    commit("main", None, &mut contents.chain([rules]));
    for number in 0..branches {
        let file = number * (files / branches);
        let changed = content(file).replace("last", "changed");
        let branch = format!("change-{number}");
        commit(&branch, Some("refs/heads/main"), &mut std::iter::once((path(file), changed)));
    }
    // The target gets commits after the branches have forked, so that there is something to merge.
    let changed = content(1).replace("first", "changed");
    commit("main", None, &mut std::iter::once((path(1), changed)));
    text
}
