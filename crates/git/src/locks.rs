//! Locks that git has left behind. A git that is killed (by a power cut, by an operator, or by the
//! server's own limit) leaves `main.lock` beside the ref that it was about to write, and from then
//! on no process can write that ref.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use signalbox_domain::ports::{HostError, Repository};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_hosts::StaleLock;
use tokio::task::spawn_blocking;

use crate::host::PlainGitHost;
use crate::processes::ARGUMENTS;

/// A lock that is younger than this may belong to a git that is at work: five times the limit of
/// the server's own calls.
const YOUNG_MINUTES: u32 = 10;
/// A lock that is older than this is stale, unless a process is seen to work in the repository:
/// until then it may belong to a git process that is not visible.
const OLD_MINUTES: u32 = 60;
/// The most folders below one another that are looked into.
const MAX_DEPTH: usize = 32;
/// Kernel ticks per second, as reported to programs on all current machines.
const TICKS: i64 = 100;
/// How exactly the start of a process is known, in seconds.
const START_SLACK: i64 = 2;

/// The stale locks of a bare repository.
pub fn stale_locks(repository: &Path, now: Timestamp) -> io::Result<Vec<StaleLock>> {
    // Processes name it by its real path.
    let folder = repository.canonicalize()?;
    let mut found = Vec::new();
    look(&folder, 0, &mut found)?;
    for below in ["objects/info", "objects/info/commit-graphs", "objects/pack", "reftable"] {
        look(&folder.join(below), 0, &mut found)?;
    }
    look(&folder.join("refs"), MAX_DEPTH, &mut found)?;
    look(&folder.join("worktrees"), 1, &mut found)?;
    let mut stale = Vec::new();
    for path in found {
        let Some(written) = written(&path) else { continue };
        let age = now.since(written);
        if age >= Span::minutes(YOUNG_MINUTES) && !may_be_held(&folder, &path, written, age) {
            stale.push(StaleLock { path, age });
        }
    }
    Ok(stale)
}

/// Files that end like locks, down to some depth. A folder that is not there has none.
fn look(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            look(&path, depth - 1, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "lock") {
            found.push(path);
        }
    }
    Ok(())
}

/// When a file was last written.
pub(crate) fn written(path: &Path) -> Option<Timestamp> {
    let written = fs::symlink_metadata(path).ok()?.modified().ok()?;
    let since = written.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_unix_micros(i64::try_from(since.as_micros()).ok()?))
}

/// Whether a process may hold a lock: one that has it open, or a git that is older than the lock
/// and at work in the repository, or in a place that cannot be seen.
fn may_be_held(folder: &Path, lock: &Path, written: Timestamp, age: Span) -> bool {
    let is_old = age >= Span::minutes(OLD_MINUTES);
    let (Ok(processes), Some(boot)) = (fs::read_dir("/proc"), boot_time()) else {
        return !is_old;
    };
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let place = process.path();
        let open = fs::read_dir(place.join("fd")).into_iter().flatten().flatten();
        if open.filter_map(|it| fs::read_link(it.path()).ok()).any(|open| open == lock) {
            return true;
        }
        let name = fs::read_to_string(place.join("comm")).unwrap_or_default();
        if !name.starts_with("git") || started_after(pid, boot, written) {
            continue;
        }
        let arguments = fs::read(place.join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments);
        // The server's own processes that stay hold no locks.
        if ARGUMENTS.iter().any(|own| arguments.trim_end_matches('\0').ends_with(&own.join("\0"))) {
            continue;
        }
        let is_named = arguments.contains(&*folder.to_string_lossy());
        let works_elsewhere = match fs::read_link(place.join("cwd")) {
            Ok(cwd) => !cwd.starts_with(folder) && !is_named,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            // It belongs to another user.
            Err(_) => is_old && !is_named,
        };
        if !works_elsewhere {
            return true;
        }
    }
    false
}

/// When the machine was started, in seconds since 1970.
fn boot_time() -> Option<i64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Whether a process was started after that time, so that it cannot have created the lock.
fn started_after(pid: u32, boot: i64, moment: Timestamp) -> bool {
    let ticks = start_time(pid).and_then(|ticks| ticks.parse::<i64>().ok());
    let started = ticks.map(|ticks| boot + ticks / TICKS);
    started.is_some_and(|started| started > moment.unix_micros() / 1_000_000 + START_SLACK)
}

/// Removes a stale lock, unless it is another one by now. It is moved away first, so that a lock
/// that is taken at the same time is seen and put back.
fn remove(repository: &Path, lock: &StaleLock, now: Timestamp) -> io::Result<bool> {
    let away = repository.join(format!("signalbox-stale-{}", now.unix_micros()));
    fs::rename(&lock.path, &away)?;
    if written(&away).is_some_and(|written| now.since(written) >= Span::minutes(YOUNG_MINUTES)) {
        fs::remove_file(&away)?;
        return Ok(true);
    }
    // Fails if there is one again.
    let back = fs::hard_link(&away, &lock.path);
    fs::remove_file(&away)?;
    back.map(|()| false)
}

impl PlainGitHost {
    /// Removes the stale locks of a repository, and returns them.
    pub async fn heal_locks(&self, repository: &Repository) -> Result<Vec<StaleLock>, HostError> {
        let folder = self.git(repository)?.dir().to_owned();
        let now = self.clock.now();
        let healed = spawn_blocking(move || {
            let mut healed = Vec::new();
            for lock in stale_locks(&folder, now)? {
                if remove(&folder, &lock, now)? {
                    healed.push(lock);
                }
            }
            Ok::<_, io::Error>(healed)
        });
        let words = |words: String| HostError::Unavailable { words: format!("locks: {words}") };
        let healed = healed.await.map_err(|error| words(error.to_string()))?;
        healed.map_err(|error| words(error.to_string()))
    }
}
/// When a process was started, in kernel ticks; distinguishes it from a later process with the same
/// id.
fn start_time(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything; the fields behind it are plain.
    let fields = stat.rsplit_once(") ")?.1;
    fields.split(' ').nth(19).map(ToOwned::to_owned)
}
