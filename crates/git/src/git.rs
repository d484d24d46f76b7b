//! The `git` program: a fixed environment, arguments that are never read as options, no shell.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::{Head, HostError};
use signalbox_domain::time::Timestamp;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The longest that one call may take.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// A repository, as the target of git calls.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    dir: PathBuf,
}

/// How a call ended.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Done {
    /// The output as text, without the newline at its end.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    fn words(&self) -> String {
        let words = self.stderr.trim();
        let words = if words.is_empty() { "git gave no reason" } else { words };
        words.chars().take(1_000).collect()
    }
}

/// Who makes a commit, and when.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) date: String,
}

impl Git {
    pub(crate) const fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(program());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .args(["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"])
            .arg("--git-dir")
            .arg(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Calls git. An exit code other than 0 is no error here.
    pub(crate) async fn call(&self, args: &[&str]) -> Result<Done, HostError> {
        let mut command = self.command();
        command.args(args);
        finish(command, None).await
    }

    /// Calls git and wants it to succeed.
    pub(crate) async fn ok(&self, args: &[&str]) -> Result<Done, HostError> {
        succeeded(self.call(args).await?)
    }

    /// The object that a name stands for; `None` when there is none of that name.
    pub(crate) async fn resolve(&self, name: &str) -> Result<Option<String>, HostError> {
        let done =
            self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options", name]).await?;
        Ok((done.code == 0).then(|| done.text()))
    }

    /// A commit and its tree; `None` when the name stands for none.
    pub(crate) async fn head(&self, name: &str) -> Result<Option<Head>, HostError> {
        let Some(sha) = self.resolve(&format!("{name}^{{commit}}")).await? else {
            return Ok(None);
        };
        let tree = self.tree(&sha).await?;
        Ok(Some(Head { sha: parse_sha(&sha)?, tree }))
    }

    /// The tree of a commit.
    pub(crate) async fn tree(&self, commit: &str) -> Result<TreeId, HostError> {
        let name = format!("{commit}^{{tree}}");
        let tree = self
            .resolve(&name)
            .await?
            .ok_or_else(|| HostError::NotFound { what: format!("commit {commit}") })?;
        TreeId::new(tree).map_err(|error| HostError::Unavailable { words: error.to_string() })
    }

    /// Whether one commit is the other or comes before it.
    pub(crate) async fn is_ancestor(&self, ancestor: &str, of: &str) -> Result<bool, HostError> {
        let done = self.call(&["merge-base", "--is-ancestor", ancestor, of]).await?;
        match done.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(HostError::Rejected { words: done.words() }),
        }
    }

    /// Makes a commit of a tree.
    pub(crate) async fn commit_tree(
        &self,
        tree: &str,
        parents: &[&str],
        message: &str,
        author: &Author,
        at: Timestamp,
    ) -> Result<String, HostError> {
        let mut command = self.command();
        command
            .env("GIT_AUTHOR_NAME", &author.name)
            .env("GIT_AUTHOR_EMAIL", &author.email)
            .env("GIT_AUTHOR_DATE", &author.date)
            .env("GIT_COMMITTER_NAME", "Signalbox")
            .env("GIT_COMMITTER_EMAIL", "signalbox@localhost")
            .env("GIT_COMMITTER_DATE", format!("@{} +0000", at.unix_micros() / 1_000_000))
            .args(["commit-tree", tree, "-F", "-"]);
        for parent in parents {
            command.args(["-p", parent]);
        }
        Ok(succeeded(finish(command, Some(message)).await?)?.text())
    }

    /// The author of a commit. A name that git would refuse to write again is replaced.
    pub(crate) async fn author(&self, commit: &str) -> Result<Author, HostError> {
        let args = ["show", "-s", "--format=%an%x00%ae%x00%ad", "--date=raw", commit];
        let text = self.ok(&args).await?.text();
        let mut parts = text.split('\0').map(ToOwned::to_owned);
        let name = parts.next().filter(|name| !name.trim().is_empty());
        Ok(Author {
            name: name.unwrap_or_else(|| "unknown".into()),
            email: parts.next().unwrap_or_default(),
            date: parts.next().unwrap_or_default(),
        })
    }

    /// Calls git with a text to read.
    pub(crate) async fn call_with(&self, args: &[&str], input: &str) -> Result<Done, HostError> {
        let mut command = self.command();
        command.args(args);
        finish(command, Some(input)).await
    }

    /// Moves the first ref if it is where it was expected, and sets the others, all or none.
    /// `false` when the first one was somewhere else.
    pub(crate) async fn move_refs(
        &self,
        (name, to, from): (&str, &str, &str),
        others: &[(String, String)],
        why: &str,
    ) -> Result<bool, HostError> {
        let mut orders = format!("update {name} {to} {from}\n");
        for (other, to) in others {
            orders.push_str(&["update ", other, " ", to, "\n"].concat());
        }
        let done = self.call_with(&["update-ref", "-m", why, "--stdin"], &orders).await?;
        if done.code == 0 {
            return Ok(true);
        }
        if self.resolve(name).await?.as_deref() != Some(from) {
            return Ok(false);
        }
        // It is where it was expected: a lock, a full disk or the like stood in the way.
        Err(HostError::Unavailable { words: done.words() })
    }

    /// Moves a ref from one commit to another, if it is at the first. `None` for the first means
    /// wherever it is. `false` when it was somewhere else.
    pub(crate) async fn move_ref(
        &self,
        name: &str,
        to: &str,
        from: Option<&str>,
        why: &str,
    ) -> Result<bool, HostError> {
        let mut args = vec!["update-ref", "-m", why, name, to];
        args.extend(from);
        let done = self.call(&args).await?;
        if done.code == 0 {
            return Ok(true);
        }
        match from {
            Some(from) if self.resolve(name).await?.as_deref() != Some(from) => Ok(false),
            // It is where it was expected: a lock, a full disk or the like stood in the way.
            Some(_) | None => Err(HostError::Unavailable { words: done.words() }),
        }
    }
}

/// Where git is, looked up once. With a bare name and an environment of its own, starting it would
/// copy the server's memory map each time; with a path the system need not.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let is_program = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0)
        };
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders).map(|it| it.join("git")).find(is_program);
        found.unwrap_or_else(|| PathBuf::from("git"))
    })
}

async fn finish(mut command: Command, input: Option<&str>) -> Result<Done, HostError> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let unavailable =
        |words: String| HostError::Unavailable { words: format!("git cannot be run: {words}") };
    let mut child = command.spawn().map_err(|error| unavailable(error.to_string()))?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that ends before it has read all says so by its exit code.
        drop(stdin.write_all(input.as_bytes()).await);
    }
    let output = tokio::time::timeout(TIME_LIMIT, child.wait_with_output())
        .await
        .map_err(|_| unavailable("it took too long".into()))?
        .map_err(|error| unavailable(error.to_string()))?;
    Ok(Done {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn succeeded(done: Done) -> Result<Done, HostError> {
    if done.code == 0 { Ok(done) } else { Err(HostError::Rejected { words: done.words() }) }
}

/// A commit id as git printed it.
pub(crate) fn parse_sha(text: &str) -> Result<Sha, HostError> {
    Sha::new(text).map_err(|error| HostError::Unavailable { words: error.to_string() })
}

/// A tree id as git printed it.
pub(crate) fn parse_tree(text: &str) -> Result<TreeId, HostError> {
    TreeId::new(text).map_err(|error| HostError::Unavailable { words: error.to_string() })
}
