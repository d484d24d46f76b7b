//! Calls of git whose output may be too long.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use signalbox_domain::ports::HostError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, copy, sink};
use tokio::process::Command;

use crate::done::Done;
use crate::git::ProcessGroup;

/// The most bytes of the error stream that are kept.
const MAX_ERRORS: u64 = 64 * 1024;

/// The most bytes that a call may print with the content of a change.
pub(crate) const MOST_OF_CONTENT: usize = 64 * 1024 * 1024;
/// The most bytes of any call: the refs of a repository are many after years.
const MOST_OUTPUT: usize = 1024 * 1024 * 1024;

/// How a call ended that was killed when it printed too much or took too long.
pub(crate) enum Ended {
    Done(Done),
    TooLong,
    TooSlow,
}

impl Ended {
    /// The outcome of a call that reads the content of a change, which is at fault for an assertion or
    /// an invalid access in git, and for too much output. A slow call, and a bus error, come from a disk
    /// that does not answer, too.
    pub(crate) fn with_content(self, what: &str, limit: Duration) -> Result<Done, HostError> {
        const CRASHES: [i32; 2] = [Signal::ABORT.as_raw(), Signal::SEGV.as_raw()];
        match self {
            Self::Done(done) if done.signal.is_some_and(|it| CRASHES.contains(&it)) => {
                Err(HostError::Rejected { words: format!("git {what} {}", done.words()) })
            }
            Self::Done(done) => Ok(done),
            Self::TooLong => Err(HostError::Rejected { words: too_long(what, MOST_OF_CONTENT) }),
            Self::TooSlow => Err(HostError::Unavailable { words: too_slow(what, limit) }),
        }
    }
}

fn too_long(what: &str, most: usize) -> String {
    format!("git {what} printed more than {most} bytes and was killed")
}

fn too_slow(what: &str, limit: Duration) -> String {
    format!("git {what} did not end within {} s and was killed", limit.as_secs())
}

/// Runs a command of git. It is killed with all that it has started when it prints more than `most`
/// bytes, when it does not end in time, and when this future is dropped.
pub(crate) async fn run(
    limit: Duration,
    mut command: Command,
    what: &str,
    input: Option<&str>,
    most: usize,
) -> Result<Ended, HostError> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let unavailable = |words: String| HostError::Unavailable { words };
    let mut child = command
        .process_group(0)
        .spawn()
        .map_err(|error| unavailable(format!("could not start git {what}: {error}")))?;
    let group = ProcessGroup::of(&child);
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that ends before it has read everything reports that by its exit code.
        drop(stdin.write_all(input.as_bytes()).await);
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        // If a command prints too much, its error stream stays open.
        let errors = tokio::spawn(beginning(stderr));
        let most_read = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let stdout = up_to(stdout, most_read).await?;
        if stdout.len() > most {
            errors.abort();
            return Ok(None);
        }
        let stderr = errors.await.map_err(io::Error::other)??;
        let status = child.wait().await?;
        Ok(Some((status, stdout, stderr)))
    };
    let Ok(ended) = tokio::time::timeout(limit, ended).await else { return Ok(Ended::TooSlow) };
    let ended: io::Result<_> = ended;
    let ended = ended.map_err(|error| {
        unavailable(format!("could not read the output of git {what}: {error}"))
    })?;
    let Some((status, stdout, stderr)) = ended else { return Ok(Ended::TooLong) };
    group.release();
    Ok(Ended::Done(Done {
        what: what.to_owned(),
        code: status.code(),
        signal: status.signal(),
        stdout,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }))
}

/// Runs a command of git within the usual limit of its output.
pub(crate) async fn finish_within(
    limit: Duration,
    command: Command,
    what: &str,
    input: Option<&str>,
) -> Result<Done, HostError> {
    match run(limit, command, what, input, MOST_OUTPUT).await? {
        Ended::Done(done) => Ok(done),
        Ended::TooLong => Err(HostError::Unavailable { words: too_long(what, MOST_OUTPUT) }),
        Ended::TooSlow => Err(HostError::Unavailable { words: too_slow(what, limit) }),
    }
}

/// Runs a command of git that must succeed; `None` if it prints more than `most` bytes.
pub(crate) async fn output(
    limit: Duration,
    command: Command,
    what: &str,
    most: usize,
) -> Result<Option<Vec<u8>>, HostError> {
    match run(limit, command, what, None, most).await? {
        Ended::Done(done) => Ok(Some(done.succeeded()?.stdout)),
        Ended::TooLong => Ok(None),
        Ended::TooSlow => Err(HostError::Unavailable { words: too_slow(what, limit) }),
    }
}

/// Reads a stream completely, and keeps its beginning: whole lines.
async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(MAX_ERRORS).read_to_end(&mut kept).await?;
        if copy(&mut stream, &mut sink()).await? > 0 {
            kept.truncate(kept.iter().rposition(|byte| *byte == b'\n').unwrap_or_default());
        }
    }
    Ok(kept)
}

async fn up_to(stream: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if let Some(stream) = stream {
        stream.take(most).read_to_end(&mut read).await?;
    }
    Ok(read)
}
