//! The process between the server and a check. Whatever the check starts is a descendant of it, in
//! whatever session or group: orphans become its children. It ends when none of them is left, and
//! ends them all when the check has ended, when they use too much memory, when the server requests
//! it, and when the server is gone. It is outside of the sandbox.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, set_child_subreaper, wait};

use crate::leftovers::{self, Process};

/// The first argument under which a program must call [`supervise`].
pub(crate) const SUPERVISE: &str = "supervise-check";
/// The message that ends a check politely. Closing the channel ends it immediately.
pub(crate) const TERMINATE: u8 = b't';
/// How long it is tried to end what does not want to end, as a process that waits for a disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the memory and the disk of a check are checked.
const LOOK: Duration = Duration::from_millis(100);

/// What a command of a check is started by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Nothing.
    None,
    /// `bwrap`, which reports to a descriptor that the command has begun and its exit code.
    Bubblewrap,
    /// The program of a container engine, which passes signals on.
    Container,
}

impl Isolation {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bubblewrap => "bubblewrap",
            Self::Container => "container",
        }
    }

    fn parse(text: &OsStr) -> Option<Self> {
        [Self::None, Self::Bubblewrap, Self::Container].into_iter().find(|it| text == it.as_str())
    }
}

/// What ends a check while it runs; 0: nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most memory of its processes, in MiB.
    pub(crate) memory_mib: u32,
    /// The least free space on the disk of its folder, in MiB.
    pub(crate) free_mib: u32,
}

impl Limits {
    /// The limit that a check breaks now.
    fn broken(self, folder: &OsStr) -> Option<String> {
        let Self { memory_mib, free_mib } = self;
        let used = || descendants().iter().map(Process::memory_kib).sum::<u64>() / 1024;
        if memory_mib > 0 && used() >= u64::from(memory_mib) {
            return Some(format!("it used more than {memory_mib} MiB of memory"));
        }
        let is_full = free_mib > 0 && free_space(folder)? < u64::from(free_mib);
        is_full.then(|| format!("it left less than {free_mib} MiB of the disk free"))
    }
}

/// The free space on the disk of a folder, in MiB.
pub(crate) fn free_space(folder: &OsStr) -> Option<u64> {
    let state = rustix::fs::statvfs(folder).ok()?;
    Some(state.f_bavail.saturating_mul(state.f_frsize) / (1024 * 1024))
}

/// Supervises a check, if the arguments of the program are: `PROGRAM supervise-check FOLDER
/// MEMORY-MIB FREE-MIB ISOLATION COMMAND…` with a channel to the server as its standard input. A program that runs
/// checks calls this first of all, and ends with the code that it returns.
pub fn supervise(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != SUPERVISE {
        return None;
    }
    let folder = arguments.next().unwrap_or_default();
    let mut number = || arguments.next()?.to_str()?.parse().ok();
    let (memory, free) = (number(), number());
    let isolation = arguments.next().and_then(|it| Isolation::parse(&it));
    let (Some(memory_mib), Some(free_mib), Some(isolation)) = (memory, free, isolation) else {
        return Some(ExitCode::FAILURE);
    };
    let limits = Limits { memory_mib, free_mib };
    let command: Vec<OsString> = arguments.collect();
    Some(match run(&folder, limits, isolation, &command) {
        Ok(()) => ExitCode::SUCCESS,
        // The server sees that the channel was closed without an answer.
        Err(_) => ExitCode::FAILURE,
    })
}

/// The messages of the supervisor, one per line.
pub(crate) enum SupervisorMessage {
    /// The check could not be started, and whether that is so because its program is not there or
    /// cannot be run.
    Error { program: bool, words: String },
    /// The check has ended with that status as the system counts it, and so has all that it had
    /// started but this many processes.
    Exited { status: i32, left: usize },
    /// The check was ended because it broke a limit.
    Over(String),
}

impl SupervisorMessage {
    fn line(&self) -> String {
        match self {
            Self::Error { program, words } => {
                let kind = if *program { "program" } else { "machine" };
                format!("{kind} {}\n", words.trim().replace('\n', " "))
            }
            Self::Exited { status, left } => format!("exited {status} {left}\n"),
            Self::Over(words) => format!("over {words}\n"),
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_end().split_once(' ')?;
        match word {
            "program" => Some(Self::Error { program: true, words: rest.to_owned() }),
            "machine" => Some(Self::Error { program: false, words: rest.to_owned() }),
            "over" => Some(Self::Over(rest.to_owned())),
            "exited" => {
                let (status, left) = rest.split_once(' ')?;
                Some(Self::Exited { status: status.parse().ok()?, left: left.parse().ok()? })
            }
            _ => None,
        }
    }
}

fn run(
    folder: &OsStr,
    limits: Limits,
    isolation: Isolation,
    command: &[OsString],
) -> io::Result<()> {
    let mut channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let missing = || io::Error::other("nothing to run");
    let (program, arguments) = command.split_first().ok_or_else(missing)?;
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut check = Command::new(program);
    let report = match isolation {
        Isolation::None | Isolation::Container => None,
        Isolation::Bubblewrap => Some(report_to(&mut check)?),
    };
    check.args(arguments).env(leftovers::MARK, folder).stdin(Stdio::null()).process_group(0);
    let started = first_to_go(|| check.spawn());
    let check = match started {
        Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(missing)?,
        Err(error) => {
            let told = SupervisorMessage::Error {
                program: isolation == Isolation::None && is_the_programs(&error),
                words: error.to_string(),
            };
            return channel.write_all(told.line().as_bytes());
        }
    };
    let report = report.map(|(reader, writer)| {
        drop(writer);
        reader
    });
    let orders = channel.try_clone()?;
    std::thread::spawn(move || obey(orders, check, isolation));
    let broken = Arc::new(OnceLock::new());
    {
        let (broken, folder) = (broken.clone(), folder.to_owned());
        std::thread::spawn(move || watch(limits, &folder, &broken));
    }
    let mut status = None;
    while status.is_none() {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, ended))) if pid == check => status = Some(ended.as_raw()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let left = end_all(Instant::now() + PATIENCE);
    let status = status.unwrap_or_default();
    let told = if let Some(words) = broken.get() {
        SupervisorMessage::Over(words.clone())
    } else if left == 0 && report.is_some_and(|report| !says_begun(report)) {
        let words = "could not set up the sandbox".to_owned();
        SupervisorMessage::Error { program: false, words }
    } else {
        SupervisorMessage::Exited { status, left }
    };
    channel.write_all(told.line().as_bytes())
}

/// Lets bubblewrap report to a pipe. Its end for the check is inherited by `bwrap`, and by nothing
/// that `bwrap` starts.
fn report_to(command: &mut Command) -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    fcntl_setfd(&writer, FdFlags::empty())?;
    command.args(["--json-status-fd", &writer.as_raw_fd().to_string()]);
    Ok((reader, writer))
}

/// Whether the report has the exit code of the command: it has none when the sandbox could not be
/// set up.
fn says_begun(mut report: PipeReader) -> bool {
    let mut text = String::new();
    // Every process that could write to it has ended.
    report.read_to_string(&mut text).is_ok() && text.contains("\"exit-code\"")
}

/// Starts a process that the system ends before others when it has no memory left.
fn first_to_go<T>(start: impl FnOnce() -> T) -> T {
    const PREFERENCE: &str = "/proc/self/oom_score_adj";
    let before = std::fs::read_to_string(PREFERENCE);
    // Where the system does not allow it, the limit of memory still applies.
    let _refused = std::fs::write(PREFERENCE, "1000");
    let started = start();
    if let Ok(before) = before {
        let _refused = std::fs::write(PREFERENCE, before.trim());
    }
    started
}

/// Ends a check when it breaks a limit, and keeps which one.
fn watch(limits: Limits, folder: &OsStr, broken: &OnceLock<String>) {
    loop {
        if let Some(words) = limits.broken(folder) {
            // The first one that it broke.
            let _later = broken.set(words);
            kill_all();
        }
        leftovers::pause(LOOK);
    }
}

/// Whether a check could not be started because of its program, and not because of the machine. In
/// a folder that is gone any program looks as if it were not there.
fn is_the_programs(error: &io::Error) -> bool {
    let is_there = std::env::current_dir().is_ok_and(|folder| folder.is_dir());
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => is_there,
        _ => error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()),
    }
}

/// Handles the messages of the server; when the channel closes, the check is ended.
fn obey(mut orders: UnixStream, check: Pid, isolation: Isolation) {
    let mut order = [0; 1];
    while let Ok(1) = orders.read(&mut order) {
        if order == [TERMINATE] {
            terminate(check, isolation);
        }
    }
    loop {
        kill_all();
        leftovers::pause(Duration::from_millis(5));
    }
}

/// Asks a check to end. It may have ended already.
fn terminate(check: Pid, isolation: Isolation) {
    match isolation {
        Isolation::None | Isolation::Container => {
            let _gone = kill_process_group(check, Signal::TERM);
        }
        // Not the two processes of bubblewrap: without them the others are killed.
        Isolation::Bubblewrap => {
            let outer = check.as_raw_nonzero().get();
            for process in descendants() {
                if process.pid != outer && process.parent != outer {
                    process.signal(Signal::TERM);
                }
            }
        }
    }
}

fn kill_all() {
    for process in descendants() {
        process.signal(Signal::KILL);
    }
}

/// Ends all that is left and takes note of its end. Returns how many did not end in time.
fn end_all(until: Instant) -> usize {
    loop {
        let left = descendants();
        for process in &left {
            process.signal(Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                // There is no child any more, so there is no descendant.
                Err(_) => return 0,
            }
        }
        if Instant::now() > until {
            return left.len();
        }
        leftovers::pause(Duration::from_millis(2));
    }
}

/// The living descendants of this process.
fn descendants() -> Vec<Process> {
    let mut by_parent = BTreeMap::<i32, Vec<Process>>::new();
    for process in leftovers::processes() {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for process in by_parent.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            found.push(process);
        }
    }
    found.retain(|process| !process.is_over);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_parsed() {
        let words = || "no such file\n".to_owned();
        for told in [
            SupervisorMessage::Error { program: true, words: words() },
            SupervisorMessage::Error { program: false, words: words() },
            SupervisorMessage::Exited { status: 256, left: 1 },
            SupervisorMessage::Over("it used more than 1 MiB of memory".to_owned()),
        ] {
            let line = told.line();
            assert_eq!(SupervisorMessage::parse(&line).map(|it| it.line()), Some(line));
        }
        assert!(SupervisorMessage::parse("exited").is_none());
        assert!(SupervisorMessage::parse("exited x 0").is_none());
    }

    #[test]
    fn other_arguments_are_not_ours() {
        assert!(supervise(["signalbox", "serve"].map(OsString::from)).is_none());
        assert!(supervise([OsString::from("signalbox")]).is_none());
        let incomplete = ["signalbox", SUPERVISE, "/folder"].map(OsString::from);
        assert!(supervise(incomplete).is_some(), "they are ours, and nothing is run");
    }
}
