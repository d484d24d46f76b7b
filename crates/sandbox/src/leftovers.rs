//! Processes as Linux shows them, and the ones that a check has left behind: found by the mark
//! in their environment, which children inherit in any session or group.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

/// The variable that marks what belongs to a check; its value is the check's folder.
pub(crate) const MARK: &str = "SIGNALBOX_CHECK";
/// How long it is tried to end what does not want to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process at the moment that it was seen.
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// Whether it has ended and only its status is left.
    pub(crate) is_over: bool,
    /// When it was started, in kernel ticks; distinguishes it from a later process with the same
    /// id.
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        // A process can give itself a name that is not UTF-8.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name is in parentheses and may contain anything; the fields behind it are plain.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let is_over = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { pid, parent, is_over, started })
    }

    /// Signals it, unless another one has its number by now.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let is_the_same = || Self::read(self.pid).is_some_and(|it| it.started == self.started);
        // Processes that have already ended need no signal.
        let _gone = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) if is_the_same() => pidfd_send_signal(process, signal),
            Err(Errno::NOSYS | Errno::PERM) if is_the_same() => kill_process(pid, signal),
            Ok(_) | Err(_) => Ok(()),
        };
    }

    /// The memory that it has for itself or shares by intent, in KiB. Pages of files, such as its
    /// program, are not counted: the system can drop them.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = fs::read(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let counted = status.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let value = value.trim().strip_suffix(" kB")?;
            if matches!(name, "RssAnon" | "RssShmem" | "VmSwap") {
                value.parse().ok()
            } else {
                None
            }
        });
        counted.fold(0, u64::saturating_add)
    }
}

/// Every process that can be seen.
pub(crate) fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read).collect()
}

/// Kills every process that is marked as belonging to a check in that folder or below it, until
/// there is none. Returns how many did not end in time.
pub(crate) fn kill_marked(folder: &Path) -> usize {
    let own = getpid().as_raw_nonzero().get();
    let until = Instant::now() + PATIENCE;
    loop {
        let mut left = processes();
        left.retain(|it| it.pid != own && !it.is_over && is_marked(it.pid, folder));
        if left.is_empty() || Instant::now() > until {
            return left.len();
        }
        for process in &left {
            process.signal(Signal::KILL);
        }
        pause(Duration::from_millis(2));
    }
}

/// Waits for a moment, on a thread that has nothing else to do.
#[expect(
    clippy::disallowed_methods,
    reason = "the supervisor and the sweep at the start are not on a runtime, and the end of a process is only signalled to its parent"
)]
pub(crate) fn pause(moment: Duration) {
    std::thread::sleep(moment);
}

/// Whether the environment that a process was started with has the mark. That of other users'
/// processes cannot be read, nor could they be killed.
fn is_marked(pid: i32, folder: &Path) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|variable| {
        let value = variable.strip_prefix(MARK.as_bytes()).and_then(|it| it.strip_prefix(b"="));
        value.is_some_and(|value| Path::new(OsStr::from_bytes(value)).starts_with(folder))
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_seen_whatever_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(OsStr::from_bytes(b"\xff\xfe) Z 1"));
        fs::copy("/bin/cat", &program).expect("copied");
        let mut child = Command::new(program).stdin(Stdio::piped()).spawn().expect("started");
        let pid = i32::try_from(child.id()).expect("a number");
        let process = Process::read(pid).expect("it is seen");
        assert_eq!(process.parent, i32::try_from(std::process::id()).expect("a number"));
        assert!(!process.is_over && process.memory_kib() > 0);
        process.signal(Signal::KILL);
        assert!(!child.wait().expect("an end").success());
    }
}
