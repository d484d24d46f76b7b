//! Calls of git whose output may be too long.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use signalbox_domain::ports::HostError;
use tokio::io::{AsyncRead, AsyncReadExt as _, copy, sink};
use tokio::process::Command;

use crate::done::Done;
use crate::git::ProcessGroup;

/// The most bytes of the error stream that are kept.
const MAX_ERRORS: u64 = 64 * 1024;

/// Runs a command of git that must succeed; `None` if it prints more than `most` bytes. The command is
/// killed in that case, on timeout, and when this future is dropped.
pub(crate) async fn output(
    limit: Duration,
    mut command: Command,
    what: &str,
    most: usize,
) -> Result<Option<Vec<u8>>, HostError> {
    let unavailable = |words: String| HostError::Unavailable { words };
    let mut child = command
        .process_group(0)
        .spawn()
        .map_err(|error| unavailable(format!("could not start git {what}: {error}")))?;
    let group = ProcessGroup::of(&child);
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
    let ended: io::Result<_> = tokio::time::timeout(limit, ended).await.map_err(|_| {
        let seconds = limit.as_secs();
        unavailable(format!("git {what} did not end within {seconds} s and was killed"))
    })?;
    let ended = ended.map_err(|error| {
        unavailable(format!("could not read the output of git {what}: {error}"))
    })?;
    let Some((status, stdout, stderr)) = ended else { return Ok(None) };
    group.release();
    let done = Done {
        what: what.to_owned(),
        code: status.code(),
        signal: status.signal(),
        stdout,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    };
    Ok(Some(done.succeeded()?.stdout))
}

/// Reads a stream completely, and keeps its beginning.
async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(MAX_ERRORS).read_to_end(&mut kept).await?;
        copy(&mut stream, &mut sink()).await?;
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
