//! A check's processes: started without a shell, ended as a whole.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::watch;

use crate::output::Output;
use crate::supervisor::{SupervisorMessage, TERMINATE};

/// How long a check has after the polite signal.
const GRACE: Duration = Duration::from_secs(2);
/// How long the supervisor has to end everything.
const END: Duration = Duration::from_secs(15);
/// How long output is read after everything has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// How a check ended.
#[derive(Debug)]
pub enum Ended {
    /// It exited.
    Exited(ExitStatus),
    /// It took too long.
    TimedOut,
    /// Its result is no longer needed.
    Stopped,
    /// It broke a limit: which one.
    OverLimit(String),
    /// What supervised it was ended by something else.
    Unsupervised,
}

impl Ended {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Exited(status) => status.to_string(),
            Self::TimedOut => "it took too long".to_owned(),
            Self::Stopped => "it was stopped".to_owned(),
            Self::OverLimit(words) => words.clone(),
            Self::Unsupervised => "its supervisor was killed".to_owned(),
        }
    }
}

/// Why a check has no result.
#[derive(Debug)]
pub enum NotRun {
    /// The program does not exist or cannot be run: the configuration of the check is at fault.
    Program(io::Error),
    /// Another error, which is not the program's fault.
    Machine(io::Error),
}

impl From<io::Error> for NotRun {
    fn from(error: io::Error) -> Self {
        Self::Machine(error)
    }
}

/// Runs the supervisor of a check until the check ends, has had its time, breaks a limit, or is not
/// wanted any more; its output goes into `output`, and may have so many bytes. All its processes have ended when this returns, and
/// they end when this future is dropped.
pub(crate) async fn run(
    mut supervisor: Command,
    time: Duration,
    most: u64,
    stopped: &mut watch::Receiver<bool>,
    output: &Output,
) -> Result<Ended, NotRun> {
    let (reader, writer) = io::pipe()?;
    let (channel, theirs) = std::os::unix::net::UnixStream::pair()?;
    channel.set_nonblocking(true)?;
    supervisor
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let mut child = supervisor.spawn()?;
    // The command holds our ends of the pipe: without them gone the output would never end.
    drop(supervisor);
    let (told, mut orders) = UnixStream::from_std(channel)?.into_split();
    let mut watched = Watched {
        told: BufReader::new(told),
        line: Vec::new(),
        reader: pipe::Receiver::from_owned_fd(reader.into())?,
        open: true,
        output,
        room: most,
        most,
    };
    let time = tokio::time::sleep(time);
    let (answer, mut ended) = tokio::select! {
        answer = watched.answer() => (Some(answer), None),
        () = time => (None, Some(Ended::TimedOut)),
        _ = stopped.wait_for(|stopped| *stopped) => (None, Some(Ended::Stopped)),
    };
    let mut answer = answer.transpose()?.flatten();
    if let Some(SupervisorMessage::Over(words)) = answer {
        (answer, ended) = (None, Some(Ended::OverLimit(words)));
    }
    if let Some(Ended::TimedOut) = ended {
        // A supervisor that has exited has reported the end.
        drop(orders.write_all(&[TERMINATE]).await);
        if let Ok(told) = tokio::time::timeout(GRACE, watched.answer()).await {
            answer = told?;
        }
    }
    // The channel's end is the order to end everything.
    drop(orders);
    if answer.is_none()
        && let Ok(told) = tokio::time::timeout(END, watched.answer()).await
    {
        answer = told?;
    }
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        child.kill().await?;
    }
    drop(tokio::time::timeout(DRAIN, watched.drain()).await);
    match (answer, ended) {
        // Also if the supervisor reports an error about a check that it had to end.
        (_, Some(ended)) => Ok(ended),
        (Some(SupervisorMessage::Error { program: true, words }), None) => {
            Err(NotRun::Program(io::Error::other(words)))
        }
        (Some(SupervisorMessage::Error { program: false, words }), None) => {
            Err(NotRun::Machine(io::Error::other(words)))
        }
        (Some(SupervisorMessage::Over(words)), None) => Ok(Ended::OverLimit(words)),
        (Some(SupervisorMessage::Exited { status, .. }), None) => {
            Ok(Ended::Exited(ExitStatus::from_raw(status)))
        }
        (None, None) => Ok(Ended::Unsupervised),
    }
}

/// The messages of a supervisor, and the output of its check.
struct Watched<'a> {
    told: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
    reader: pipe::Receiver,
    open: bool,
    output: &'a Output,
    /// How many more bytes it may have, of how many.
    room: u64,
    most: u64,
}

impl Watched<'_> {
    /// Reads the supervisor's report of the end; `None` when it exits without one. Too much output
    /// is reported once, and read on without a limit.
    async fn answer(&mut self) -> io::Result<Option<SupervisorMessage>> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                read = self.reader.read(&mut buffer), if self.open => match read? {
                    0 => self.open = false,
                    count => {
                        self.output.push(buffer.get(..count).unwrap_or_default());
                        let count = u64::try_from(count).unwrap_or(u64::MAX);
                        if let Some(room) = self.room.checked_sub(count) {
                            self.room = room;
                        } else {
                            self.room = u64::MAX;
                            let mebibytes = self.most / (1024 * 1024);
                            let words = format!("it printed more than {mebibytes} MiB");
                            return Ok(Some(SupervisorMessage::Over(words)));
                        }
                    }
                },
                // A partly read line is kept when the other branch of the select is first.
                read = self.told.read_until(b'\n', &mut self.line) => {
                    read?;
                    return Ok(SupervisorMessage::parse(&String::from_utf8_lossy(&self.line)));
                }
            }
        }
    }

    async fn drain(&mut self) {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = self.reader.read(&mut buffer).await {
            self.output.push(buffer.get(..count).unwrap_or_default());
        }
    }
}
