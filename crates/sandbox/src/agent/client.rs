//! The sandbox of a server whose checks an agent runs.

use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use signalbox_domain::ports::ReportFile;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use super::checkout;
use super::wire::{Answer, Done, Frame, Frames, Kind, PATIENCE, PROTOCOL, Report, Request, write};
use crate::reports::{MAX_BYTES, MAX_FILE_BYTES, MAX_FILES};
use crate::{
    Collected, Ended, Job, JobFolder, NotReady, NotRun, Output, Ran, Ready, Sandbox, leftovers,
};

/// How much longer than its job an agent may take: to unpack it, to end it, and to send what it
/// left.
const GRACE: Duration = Duration::from_mins(5);
/// How long an agent may take to end a job that is not wanted any more.
const STOP: Duration = Duration::from_secs(30);
/// How many pieces of a checkout are packed ahead.
const AHEAD: usize = 8;

/// Gives jobs to an agent.
pub struct AgentSandbox {
    socket: PathBuf,
}

/// A connection to an agent that accepted what was wanted.
struct Accepted {
    ready: Ready,
    frames: Frames,
    writer: OwnedWriteHalf,
}

impl AgentSandbox {
    /// The sandbox of the agent that listens on a socket.
    pub const fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Asks the agent to run a job, or whether it would.
    async fn ask(&self, job: Option<Job>) -> Result<Accepted, NotReady> {
        let socket = self.socket.display();
        let failed = |error: io::Error| {
            NotReady(format!(
                "the agent at {socket} does not answer: {error}; start `signalbox agent` as the user \
                 that runs checks"
            ))
        };
        let asked = tokio::time::timeout(PATIENCE, async {
            let stream = UnixStream::connect(&self.socket).await?;
            let user = stream.peer_cred()?.uid();
            let (reader, mut writer) = stream.into_split();
            let mut frames = Frames::of(reader);
            let request = Request { protocol: PROTOCOL, job };
            // An agent that refuses this user reads nothing.
            let sent = Frame::of(Kind::Request, &request)?.write(&mut writer).await;
            let answer: Answer = match frames.expect(Kind::Answer).await {
                Ok(frame) => frame.value()?,
                Err(error) => return Err(sent.err().unwrap_or(error)),
            };
            Ok((user, answer, frames, writer))
        });
        let asked = asked.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let (user, answer, frames, writer) = asked.map_err(failed)?;
        match answer {
            Answer::Ready(Ready { by, network }) => {
                let by = format!("{by}, by the agent of user {user}");
                Ok(Accepted { ready: Ready { by, network }, frames, writer })
            }
            Answer::Refused(words) => Err(NotReady(format!("the agent at {socket}: {words}"))),
        }
    }
}

/// Sends a checkout.
async fn send(folder: &JobFolder, writer: &mut OwnedWriteHalf) -> io::Result<()> {
    let (sender, mut pieces) = mpsc::channel(AHEAD);
    let checkout = folder.checkout();
    let packing = spawn_blocking(move || checkout::pack(&checkout, sender));
    while let Some(piece) = pieces.recv().await {
        write(writer, Kind::Bytes, &piece).await?;
    }
    packing.await.map_err(io::Error::other)??;
    write(writer, Kind::Whole, &[]).await
}

/// The reports that an agent sends. It is not trusted with the server's memory or disk.
struct Reports {
    folder: PathBuf,
    files: Vec<ReportFile>,
    /// The one that arrives: its name, its file, and how many of its bytes are missing.
    open: Option<(String, std::fs::File, u64)>,
    bytes: u64,
}

impl Reports {
    fn begin(&mut self, report: Report) -> io::Result<()> {
        self.finish()?;
        let Report { name, length } = report;
        self.bytes = self.bytes.saturating_add(length);
        if self.files.len() >= MAX_FILES || length > MAX_FILE_BYTES || self.bytes > MAX_BYTES {
            return Err(io::Error::other("the agent sent more reports than a check may leave"));
        }
        self.open = Some((name, tempfile::tempfile_in(&self.folder)?, length));
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let wrong = || io::Error::other("the agent sent bytes of no report");
        let (_, file, missing) = self.open.as_mut().ok_or_else(wrong)?;
        let count = u64::try_from(bytes.len()).map_err(io::Error::other)?;
        *missing = missing.checked_sub(count).ok_or_else(wrong)?;
        file.write_all(bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some((name, mut file, missing)) = self.open.take() else { return Ok(()) };
        if missing > 0 {
            return Err(io::Error::other("the agent sent less of a report than it said"));
        }
        file.rewind()?;
        self.files.push(ReportFile { name, content: Box::new(file) });
        Ok(())
    }
}

/// Reads what an agent sends of a job, until its end.
async fn follow(frames: &mut Frames, folder: &Path, output: &Output) -> Result<Ran, NotRun> {
    let folder = folder.to_owned();
    let mut reports = Reports { folder, files: Vec::new(), open: None, bytes: 0 };
    loop {
        let gone = || io::Error::other("the agent ended the connection");
        let frame = frames.next().await?.ok_or_else(gone)?;
        match frame.kind {
            Kind::Output => output.push(&frame.bytes),
            Kind::Report => reports.begin(frame.value()?)?,
            Kind::Bytes => reports.add(&frame.bytes)?,
            Kind::Done => {
                reports.finish()?;
                let Done { ended, omitted, old } = frame.value()?;
                let ended = match ended.into() {
                    // Only the server itself decides that it does not want a result.
                    Ok(Ended::Stopped) => {
                        return Err(io::Error::other("the agent stopped the check").into());
                    }
                    ended => ended,
                };
                let reports = Collected { files: reports.files, omitted, old };
                return ended.map(|ended: Ended| Ran { ended, reports });
            }
            kind @ (Kind::Request | Kind::Answer | Kind::Whole) => {
                return Err(io::Error::other(format!("the agent sent a frame {kind:?}")).into());
            }
        }
    }
}

#[async_trait]
impl Sandbox for AgentSandbox {
    async fn ready(&self) -> Result<Ready, NotReady> {
        Ok(self.ask(None).await?.ready)
    }

    async fn run(
        &self,
        job: Job,
        folder: &JobFolder,
        stopped: &mut watch::Receiver<bool>,
        output: &Output,
    ) -> Result<Ran, NotRun> {
        let time = job.time.saturating_add(GRACE);
        let accepted = self.ask(Some(job)).await;
        let accepted = accepted.map_err(|refused| io::Error::other(refused.to_string()))?;
        let Accepted { mut frames, mut writer, .. } = accepted;
        // The end of what the server sends is the order to end the job.
        let give = async move {
            tokio::select! {
                sent = send(folder, &mut writer) => sent?,
                _ = stopped.wait_for(|stopped| *stopped) => return Ok::<(), io::Error>(()),
            }
            let _gone = stopped.wait_for(|stopped| *stopped).await;
            drop(writer);
            Ok(())
        };
        let follow = follow(&mut frames, folder.path(), output);
        tokio::pin!(follow);
        let given = tokio::select! {
            ran = &mut follow => return ran,
            given = give => given,
            () = tokio::time::sleep(time) => {
                return Err(io::Error::other("the agent did not end the check in time").into());
            }
        };
        let rest = tokio::time::timeout(STOP, follow).await;
        match (given, rest) {
            (Ok(()), _) => Ok(Ran { ended: Ended::Stopped, reports: Collected::default() }),
            // The agent says why it does not read on.
            (Err(_), Ok(ran @ Err(_))) => ran,
            (Err(error), _) => Err(error.into()),
        }
    }

    fn sweep(&self, folder: &Path) {
        // Checks of a time without an agent.
        leftovers::kill_marked(folder);
        let Ok(jobs) = std::fs::read_dir(folder) else { return };
        for job in jobs.flatten() {
            crate::clear(&job.path());
        }
    }
}
