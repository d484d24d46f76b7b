//! The `git` program: a fixed environment, arguments that are never read as options, no shell.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::{Head, HostError};
use signalbox_domain::time::Timestamp;
use tokio::process::{Child, Command};

use crate::bounded::{self, finish_within};
use crate::commit::{COMMITTER, RawCommit, written};
use crate::done::Done;
use crate::processes::Processes;
use crate::remote::Access;

/// The longest that one call may take.
pub(crate) const TIME_LIMIT: Duration = Duration::from_mins(2);
/// The most characters of an author's name and address.
const MAX_AUTHOR: usize = 1_000;

/// A repository, as the target of git calls.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    dir: PathBuf,
    processes: Option<Arc<Processes>>,
    remote: Option<Arc<Access>>,
}

/// Who makes a commit, and when.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) email: String,
    /// Seconds and offset; `None` for one that git cannot write, which becomes the time of the
    /// commit.
    pub(crate) date: Option<String>,
}

impl Git {
    pub(crate) const fn at(dir: PathBuf) -> Self {
        Self { dir, processes: None, remote: None }
    }

    /// The same repository, with processes that stay.
    pub(crate) fn with(self, processes: &Arc<Processes>) -> Self {
        Self { processes: Some(processes.clone()), ..self }
    }

    /// The same repository, with access to the remote that it is a mirror of.
    pub(crate) fn reaching(self, remote: &Arc<Access>) -> Self {
        Self { remote: Some(remote.clone()), ..self }
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
            // A pushed refs/replace would show this git other contents than other clones have.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("LC_ALL", "C")
            .args(["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"])
            .arg("--git-dir")
            .arg(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(remote) = &self.remote {
            command.envs(remote.variables());
        }
        command
    }

    /// Calls git. An exit code other than 0 is not an error here.
    pub(crate) async fn call(&self, args: &[&str]) -> Result<Done, HostError> {
        let mut command = self.command();
        command.args(args);
        finish(command, args.first().copied().unwrap_or_default(), None).await
    }

    /// Calls git and wants it to succeed.
    pub(crate) async fn ok(&self, args: &[&str]) -> Result<Done, HostError> {
        self.call(args).await?.succeeded()
    }

    /// Calls git with the content of a change, which is at fault if git crashes or prints too much: the
    /// next call with it would end like that, too.
    pub(crate) async fn call_with_content(&self, args: &[&str]) -> Result<Done, HostError> {
        let mut command = self.command();
        command.args(args);
        let what = args.iter().find(|arg| !is_option(arg)).copied().unwrap_or_default();
        let ended = bounded::run(TIME_LIMIT, command, what, None, bounded::MOST_OF_CONTENT).await?;
        ended.with_content(what, TIME_LIMIT)
    }

    /// The output of a call that must succeed; `None` if it is longer than `most` bytes; git is
    /// then killed.
    pub(crate) async fn ok_up_to(
        &self,
        args: &[&str],
        most: usize,
    ) -> Result<Option<Vec<u8>>, HostError> {
        let mut command = self.command();
        command.args(args);
        let what = args.iter().find(|arg| !is_option(arg)).copied().unwrap_or_default();
        bounded::output(TIME_LIMIT, command, what, most).await
    }

    /// The commit of a ref. `None` when there is none of that name in a repository that can be
    /// read; one that is there and cannot be read is an error.
    pub(crate) async fn tip(&self, name: &str) -> Result<Option<String>, HostError> {
        Ok(self.shown(name, "%(objectname)").await?.and_then(|mut fields| fields.pop()))
    }

    /// The commit and the tree that a ref points at. `None` as for [`tip`](Self::tip).
    pub(crate) async fn head(&self, name: &str) -> Result<Option<Head>, HostError> {
        let Some(fields) = self.shown(name, "%(objectname) %(tree)").await? else {
            return Ok(None);
        };
        match fields.as_slice() {
            [commit, tree] => Ok(Some(Head { sha: parse_sha(commit)?, tree: parse_tree(tree)? })),
            _ => Err(HostError::Unavailable { words: format!("not a commit: {name}") }),
        }
    }

    /// Fields of a ref, as `for-each-ref` shows them.
    async fn shown(&self, name: &str, fields: &str) -> Result<Option<Vec<String>>, HostError> {
        let format = format!("--format=%(refname) {fields}");
        let done = self.ok(&["for-each-ref", &format, name]).await?;
        for line in done.text().lines() {
            // A name is a folder of names too.
            let mut words = line.split(' ').filter(|word| !word.is_empty());
            if words.next() == Some(name) {
                return Ok(Some(words.map(ToOwned::to_owned).collect()));
            }
        }
        // A ref that cannot be read is omitted with a warning.
        let of_it = format!(" {name}");
        if done.stderr.lines().any(|line| line.ends_with(&of_it)) {
            return Err(done.trouble());
        }
        Ok(None)
    }

    /// The tree of a commit.
    pub(crate) async fn tree(&self, commit: &str) -> Result<TreeId, HostError> {
        if let Some(content) = self.read(commit).await
            && let Some(raw) = RawCommit::parse(&content)
        {
            return parse_tree(raw.tree);
        }
        let name = format!("{commit}^{{tree}}");
        let done = self.call(&["rev-parse", "--verify", "--end-of-options", &name]).await?;
        if done.code != Some(0) {
            return Err(self.missing(&[commit], done.trouble()).await);
        }
        parse_tree(&done.text())
    }

    /// The first of these commits that is not in the repository, as an error; the original error
    /// when all of them exist, or when that is unknown.
    pub(crate) async fn missing(&self, commits: &[&str], trouble: HostError) -> HostError {
        for commit in commits {
            match self.call(&["cat-file", "-e", commit]).await.and_then(|done| done.yes_or_no()) {
                Ok(true) => {}
                Ok(false) => return HostError::NotFound { what: format!("commit {commit}") },
                Err(_) => return trouble,
            }
        }
        trouble
    }

    /// Whether one commit is the other or comes before it.
    pub(crate) async fn is_ancestor(&self, ancestor: &str, of: &str) -> Result<bool, HostError> {
        self.call(&["merge-base", "--is-ancestor", ancestor, of]).await?.yes_or_no()
    }

    /// Whether a commit is an ancestor of another, as [`is_ancestor`](Self::is_ancestor); what was
    /// one once counts as one, though a target may have been moved back since.
    pub(crate) async fn is_fork_point(&self, commit: &str, of: &str) -> Result<bool, HostError> {
        let key = || (self.dir.clone(), commit.to_owned());
        if let Some(processes) = &self.processes
            && processes.forks.get(&key()).is_some()
        {
            return Ok(true);
        }
        let is_one = self.is_ancestor(commit, of).await?;
        if let Some(processes) = self.processes.as_ref().filter(|_| is_one) {
            processes.forks.insert(key(), ());
        }
        Ok(is_one)
    }

    /// The parents of a commit.
    pub(crate) async fn parents(&self, commit: &str) -> Result<Vec<String>, HostError> {
        if let Some(content) = self.read(commit).await
            && let Some(raw) = RawCommit::parse(&content)
        {
            return Ok(raw.parents.into_iter().map(ToOwned::to_owned).collect());
        }
        let args = ["show", "-s", "--format=%P", commit];
        let text = self.call_with_content(&args).await?.succeeded()?.text();
        Ok(text.split(' ').filter(|parent| !parent.is_empty()).map(ToOwned::to_owned).collect())
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
        let message = message.replace('\0', "");
        if let Some(processes) = &self.processes
            && let Some(content) = written(tree, parents, &message, author, at)
            && let Some(id) = processes.write(self, &content).await
        {
            return Ok(id);
        }
        let now = format!("@{} +0000", at.unix_micros() / 1_000_000);
        let mut command = self.command();
        command
            .env("GIT_AUTHOR_NAME", &author.name)
            .env("GIT_AUTHOR_EMAIL", &author.email)
            .env("GIT_AUTHOR_DATE", author.date.as_ref().unwrap_or(&now))
            .env("GIT_COMMITTER_NAME", COMMITTER.0)
            .env("GIT_COMMITTER_EMAIL", COMMITTER.1)
            .env("GIT_COMMITTER_DATE", &now)
            .args(["commit-tree", tree, "-F", "-"]);
        for parent in parents {
            command.args(["-p", parent]);
        }
        let done = finish(command, "commit-tree", Some(&message)).await?;
        Ok(done.succeeded()?.text())
    }

    /// The author of a commit. What git would refuse to write again is replaced.
    pub(crate) async fn author(&self, commit: &str) -> Result<Author, HostError> {
        if let Some(content) = self.read(commit).await
            && let Some((name, email, date)) =
                RawCommit::parse(&content).and_then(|raw| raw.author())
        {
            let (name, date) = (writable_name(name), writable_date(date));
            return Ok(Author { name, email: cut(email), date });
        }
        let args = ["show", "-s", "--format=%an%x00%ae%x00%ad", "--date=raw", commit];
        let done = self.call(&args).await?;
        if done.code != Some(0) {
            return Err(self.missing(&[commit], done.trouble()).await);
        }
        let text = done.text();
        let mut parts = text.split('\0');
        let mut next = || parts.next().unwrap_or_default();
        Ok(Author { name: writable_name(next()), email: cut(next()), date: writable_date(next()) })
    }

    /// The content of a commit, from a process that stays.
    async fn read(&self, commit: &str) -> Option<Vec<u8>> {
        self.processes.as_ref()?.commit(self, commit).await
    }

    /// The commits of these names, from a process that stays.
    pub(crate) async fn named(&self, names: &[String]) -> Option<Vec<Option<String>>> {
        self.processes.as_ref()?.named(self, names).await
    }

    /// Calls git with a text to read.
    pub(crate) async fn call_with(&self, args: &[&str], input: &str) -> Result<Done, HostError> {
        let mut command = self.command();
        command.args(args);
        finish(command, args.first().copied().unwrap_or_default(), Some(input)).await
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
        if done.code == Some(0) {
            return Ok(true);
        }
        if self.tip(name).await?.as_deref() != Some(from) {
            return Ok(false);
        }
        // It is where it was expected: a lock, a full disk or the like blocked the update.
        Err(done.trouble())
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
        if done.code == Some(0) {
            return Ok(true);
        }
        match from {
            Some(from) if self.tip(name).await?.as_deref() != Some(from) => Ok(false),
            // It is where it was expected: a lock, a full disk or the like blocked the update.
            Some(_) | None => Err(done.trouble()),
        }
    }
}

/// Where git is, looked up once. With a bare name and an environment of its own, starting it would
/// copy the server's memory map each time; with a path the system need not.
pub(crate) fn program() -> &'static Path {
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

fn is_option(arg: &str) -> bool {
    arg.starts_with('-') || arg.contains('=')
}

async fn finish(command: Command, what: &str, input: Option<&str>) -> Result<Done, HostError> {
    finish_within(TIME_LIMIT, command, what, input).await
}

/// The processes of a call of git, which starts others to fetch. They are killed when it is dropped.
pub(crate) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group of a process that was started as its leader.
    pub(crate) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)))
    }

    /// Leaves them as they are.
    pub(crate) fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // There may be none left.
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// A name that git accepts: it refuses names that consist only of these characters.
pub(crate) fn writable_name(name: &str) -> String {
    let is_left_out = |c: char| c <= ' ' || ".,:;<>\"\\'".contains(c);
    if name.chars().all(is_left_out) { "unknown".into() } else { cut(name) }
}

/// Short enough for a variable of the environment.
fn cut(text: &str) -> String {
    text.chars().take(MAX_AUTHOR).collect()
}

/// Seconds since 1970 and an offset, as git will read them: it takes small numbers for something
/// else and refuses large ones. `None` for anything else.
pub(crate) fn writable_date(date: &str) -> Option<String> {
    let (seconds, zone) = date.split_once(' ')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (sign, offset) = zone.split_at_checked(1)?;
    let good = (1..=12).contains(&seconds.len()) && offset.len() == 4 && "+-".contains(sign);
    (good && digits(seconds) && digits(offset)).then(|| format!("@{date}"))
}

/// A commit id as git printed it.
pub(crate) fn parse_sha(text: &str) -> Result<Sha, HostError> {
    Sha::new(text).map_err(|error| HostError::Unavailable { words: error.to_string() })
}

/// A tree id as git printed it.
pub(crate) fn parse_tree(text: &str) -> Result<TreeId, HostError> {
    TreeId::new(text).map_err(|error| HostError::Unavailable { words: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_that_git_would_refuse_are_replaced() {
        assert_eq!(writable_name("Ada, Countess"), "Ada, Countess");
        for refused in ["", "  ", ",;", "<>", "\"'"] {
            assert_eq!(writable_name(refused), "unknown", "{refused:?}");
        }
        assert_eq!(writable_name(&"a".repeat(200_000)).len(), MAX_AUTHOR);
    }

    #[test]
    fn dates_that_git_would_refuse_or_misread_are_replaced() {
        assert_eq!(writable_date("5 +0000").as_deref(), Some("@5 +0000"));
        assert_eq!(writable_date("1700000000 -0730").as_deref(), Some("@1700000000 -0730"));
        for refused in ["", "5", "x +0000", "99999999999999999999 +0000", "5 0000", "5 +00"] {
            assert_eq!(writable_date(refused), None, "{refused:?}");
        }
    }

    /// Whether a process runs: it has ended when only its status is left.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    #[tokio::test]
    async fn what_a_call_has_started_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        let script = format!("sleep 300 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        let call = finish_within(Duration::from_secs(1_000), command, "fetch", None);
        let started = async {
            loop {
                if let Ok(pid) = std::fs::read_to_string(&file) {
                    break pid.trim().to_owned();
                }
                tokio::task::yield_now().await;
            }
        };
        let pid = tokio::select! {
            done = call => panic!("{done:?}"),
            pid = started => pid,
        };
        // The call was dropped.
        let ended = async {
            while runs(&pid) {
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
        assert!(ended.is_ok(), "process {pid} still runs");
    }
}
