//! A check's process group: started without a shell, killed as a whole.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::Command;

use crate::output::Output;

/// How long a group has after the polite signal.
const GRACE: Duration = Duration::from_secs(2);
/// How long output is read after the check's own process has ended and its group was killed.
const DRAIN: Duration = Duration::from_secs(2);

/// How a process ended.
pub(crate) enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// It took too long.
    TimedOut,
}

/// Why a process was not run to its end.
pub(crate) enum NotRun {
    /// The program is not there or cannot be run: whoever named it is at fault.
    Program(io::Error),
    /// Something else, which says nothing about the program.
    Machine(io::Error),
}

impl From<io::Error> for NotRun {
    fn from(error: io::Error) -> Self {
        Self::Machine(error)
    }
}

/// Kills a group when it is dropped.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // It may be gone already.
            let _gone = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Runs a command in a process group of its own until it ends or has had its time; what it printed
/// goes into `output`. Whatever it started is killed when it ends, and when this future is dropped.
/// `record` is a file that names the group while it runs.
pub(crate) async fn run(
    mut command: Command,
    time: Duration,
    record: &Path,
    output: &mut Output,
) -> Result<Ended, NotRun> {
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .kill_on_drop(true);
    let folder = command.as_std().get_current_dir().map(Path::to_owned);
    let mut child = command.spawn().map_err(|error| {
        // A folder that is gone looks like a program that is not there.
        let is_there = folder.is_none_or(|folder| folder.is_dir());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if is_there => {
                NotRun::Program(error)
            }
            _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
                NotRun::Program(error)
            }
            _ => NotRun::Machine(error),
        }
    })?;
    // The command holds our ends of the pipe: without them gone the output would never end.
    drop(command);
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    if let Some(pid) = child.id() {
        std::fs::write(record, format!("{pid} {}", start_time(pid).unwrap_or_default()))?;
    }
    let mut reader = pipe::Receiver::from_owned_fd(reader.into())?;
    let reading = tokio::time::sleep(time);
    tokio::pin!(reading);
    let mut buffer = vec![0; 16 * 1024];
    let mut open = true;
    let ended = loop {
        tokio::select! {
            read = reader.read(&mut buffer), if open => match read? {
                0 => open = false,
                count => output.push(buffer.get(..count).unwrap_or_default()),
            },
            status = child.wait() => break Ended::Exited(status?),
            () = &mut reading => break Ended::TimedOut,
        }
    };
    if matches!(ended, Ended::TimedOut) {
        group.signal(Signal::TERM);
        drop(tokio::time::timeout(GRACE, child.wait()).await);
    }
    drop(group);
    drop(
        tokio::time::timeout(DRAIN, async {
            while let Ok(count @ 1..) = reader.read(&mut buffer).await {
                output.push(buffer.get(..count).unwrap_or_default());
            }
        })
        .await,
    );
    drop(std::fs::remove_file(record));
    Ok(ended)
}

/// Kills the group that a record names, if its first process is still the one that was recorded.
pub(crate) fn kill_recorded(record: &Path) {
    let Ok(text) = std::fs::read_to_string(record) else { return };
    let Some((pid, started)) = text.split_once(' ') else { return };
    let Ok(pid) = pid.parse::<u32>() else { return };
    if !started.is_empty() && start_time(pid).as_deref() == Some(started) {
        drop(Group(i32::try_from(pid).ok().and_then(Pid::from_raw)));
    }
}

/// When a process was started, in the kernel's own count; tells it from a later one of its number.
pub(crate) fn start_time(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything; the fields behind it are plain.
    let fields = stat.rsplit_once(") ")?.1;
    fields.split(' ').nth(19).map(ToOwned::to_owned)
}
