//! The process between the server and a check. Whatever the check starts is a descendant of it, in
//! whatever session or group: orphans become its children. It ends when none of them is left, and
//! ends them all when the check has ended, when the server requests it, and when the server is
//! gone.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, set_child_subreaper, wait};

use crate::leftovers::{self, Process};

/// The first argument under which a program must call [`supervise`].
pub(crate) const SUPERVISE: &str = "supervise-check";
/// The message that ends a check politely. Closing the channel ends it immediately.
pub(crate) const TERMINATE: u8 = b't';
/// How long it is tried to end what does not want to end, as a process that waits for a disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// Supervises a check, if the arguments of the program are: `PROGRAM supervise-check FOLDER
/// COMMAND…` with a channel to the server as its standard input. A program that runs checks calls
/// this first of all, and ends with the code that it returns.
pub fn supervise(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != SUPERVISE {
        return None;
    }
    let folder = arguments.next().unwrap_or_default();
    let command: Vec<OsString> = arguments.collect();
    Some(match run(&folder, &command) {
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
}

impl SupervisorMessage {
    fn line(&self) -> String {
        match self {
            Self::Error { program, words } => {
                let kind = if *program { "program" } else { "machine" };
                format!("{kind} {}\n", words.trim().replace('\n', " "))
            }
            Self::Exited { status, left } => format!("exited {status} {left}\n"),
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_end().split_once(' ')?;
        match word {
            "program" => Some(Self::Error { program: true, words: rest.to_owned() }),
            "machine" => Some(Self::Error { program: false, words: rest.to_owned() }),
            "exited" => {
                let (status, left) = rest.split_once(' ')?;
                Some(Self::Exited { status: status.parse().ok()?, left: left.parse().ok()? })
            }
            _ => None,
        }
    }
}

fn run(folder: &OsStr, command: &[OsString]) -> io::Result<()> {
    let mut channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let missing = || io::Error::other("nothing to run");
    let (program, arguments) = command.split_first().ok_or_else(missing)?;
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut check = Command::new(program);
    check.args(arguments).env(leftovers::MARK, folder).stdin(Stdio::null()).process_group(0);
    let check = match check.spawn() {
        Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(missing)?,
        Err(error) => {
            let told = SupervisorMessage::Error {
                program: is_the_programs(&error),
                words: error.to_string(),
            };
            return channel.write_all(told.line().as_bytes());
        }
    };
    let orders = channel.try_clone()?;
    std::thread::spawn(move || obey(orders, check));
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
    channel.write_all(SupervisorMessage::Exited { status, left }.line().as_bytes())
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
fn obey(mut orders: UnixStream, check: Pid) {
    let mut order = [0; 1];
    while let Ok(1) = orders.read(&mut order) {
        if order == [TERMINATE] {
            // It may be gone already.
            let _gone = kill_process_group(check, Signal::TERM);
        }
    }
    loop {
        for process in descendants() {
            process.kill();
        }
        leftovers::pause(Duration::from_millis(5));
    }
}

/// Ends all that is left and takes note of its end. Returns how many did not end in time.
fn end_all(until: Instant) -> usize {
    loop {
        let left = descendants();
        for process in &left {
            process.kill();
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
    }
}
