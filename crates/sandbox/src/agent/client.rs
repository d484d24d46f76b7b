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

use super::wire::{Answer, Done, Frame, Frames, Kind, PATIENCE, PROTOCOL, Report, Request, write};
use crate::archive::{self, AHEAD};
use crate::reports::{MAX_BYTES, MAX_FILE_BYTES, MAX_FILES};
use crate::{
    Collected, Ended, Job, JobFolder, NotReady, NotRun, Output, Ran, Ready, Sandbox, folder,
};

/// How much longer than its job an agent may take: to unpack it, to end it, and to send what it
/// left.
const GRACE: Duration = Duration::from_mins(5);
/// How long an agent may take to end a job that is not wanted any more.
const STOP: Duration = Duration::from_secs(30);

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
    let packing = spawn_blocking(move || archive::pack(&checkout, None, sender));
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
            return Err(io::Error::other("the agent sent less of a report than it announced"));
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
        // Also what checks left here before an agent ran them.
        folder::clear_jobs(folder);
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::super::wire::End;
    use super::*;

    /// An agent that accepts the next connection, answers that it is ready, and then does this.
    fn agent(
        socket: &Path,
        frames: Vec<(Kind, Vec<u8>)>,
        stays: bool,
    ) -> tokio::task::JoinHandle<()> {
        let listener = UnixListener::bind(socket).expect("a socket");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let answer = Answer::Ready(Ready { by: "nothing".to_owned(), network: false });
            let answer = Frame::of(Kind::Answer, &answer).expect("an answer");
            answer.write(&mut stream).await.expect("sent");
            for (kind, bytes) in frames {
                write(&mut stream, kind, &bytes).await.expect("sent");
            }
            if stays {
                std::future::pending::<()>().await;
            }
            // Reads what is sent until the server is gone, so that all of it arrives.
            tokio::io::AsyncWriteExt::shutdown(&mut stream).await.expect("shut down");
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.ok();
        })
    }

    /// What becomes of a job that such an agent gets.
    async fn refusal(frames: Vec<(Kind, Vec<u8>)>, stays: bool) -> String {
        let place = tempfile::tempdir().expect("a folder");
        let socket = place.path().join("agent.sock");
        let _agent = agent(&socket, frames, stays);
        let folder = JobFolder::new(&place.path().join("job")).expect("a folder");
        let job = Job {
            run: vec!["true".to_owned()],
            environment: Vec::new(),
            time: Duration::from_mins(1),
            hidden: Vec::new(),
            reports: Vec::new(),
        };
        let (_never, mut stopped) = watch::channel(false);
        let output = Output::default();
        let ran = AgentSandbox::new(socket).run(job, &folder, &mut stopped, &output).await;
        match ran {
            Err(NotRun::Machine(error)) => error.to_string(),
            Err(NotRun::Program(error)) => panic!("no fault of the check: {error}"),
            Ok(ran) => panic!("{:?}", ran.ended),
        }
    }

    fn frame<T: serde::Serialize>(kind: Kind, value: &T) -> (Kind, Vec<u8>) {
        (kind, Frame::of(kind, value).expect("a frame").bytes)
    }

    fn report(length: u64) -> (Kind, Vec<u8>) {
        frame(Kind::Report, &Report { name: "a.xml".to_owned(), length })
    }

    fn done(ended: End) -> (Kind, Vec<u8>) {
        frame(Kind::Done, &Done { ended, omitted: 0, old: 0 })
    }

    #[tokio::test]
    async fn an_agent_cannot_drop_a_check_or_send_more_than_a_check_may_leave() {
        let success = || done(End::Exited(0));
        let many = vec![report(0); MAX_FILES + 1];
        let large = vec![report(MAX_FILE_BYTES + 1)];
        for (frames, words) in [
            (vec![done(End::Stopped)], "the agent stopped the check"),
            (vec![(Kind::Bytes, vec![1]), success()], "bytes of no report"),
            (vec![report(1), (Kind::Bytes, vec![1, 2]), success()], "bytes of no report"),
            (vec![report(2), (Kind::Bytes, vec![1]), success()], "less of a report"),
            (vec![report(2), report(2)], "less of a report"),
            (many, "more reports than a check may leave"),
            (large, "more reports than a check may leave"),
            (vec![(Kind::Whole, Vec::new())], "a frame Whole"),
            (vec![(Kind::Done, b"{}".to_vec())], "missing field"),
            (Vec::new(), "the agent ended the connection"),
        ] {
            let said = refusal(frames, false).await;
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_agent_is_abandoned_after_its_time() {
        let begun = tokio::time::Instant::now();
        let said = refusal(Vec::new(), true).await;
        assert_eq!(said, "the agent did not end the check in time");
        assert_eq!(begun.elapsed().as_secs(), 60 + GRACE.as_secs());

        let place = tempfile::tempdir().expect("a folder");
        let socket = place.path().join("agent.sock");
        // The kernel connects for it.
        let _frozen = UnixListener::bind(&socket).expect("a socket");
        let refused = AgentSandbox::new(socket).ready().await.expect_err("frozen").to_string();
        assert!(refused.contains("does not answer: timed out"), "{refused}");
    }
}
