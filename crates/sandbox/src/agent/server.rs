//! The agent: runs the jobs that servers of some users give it.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use signalbox_domain::ports::ReportFile;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};

use super::wire::{
    Answer, Done, End, Frame, Frames, Kind, PATIENCE, PROTOCOL, Report, Request, write,
};
use crate::archive::{self, AHEAD};
use crate::container::OF_ENGINES;
use crate::{Collected, Ended, Job, JobFolder, NotRun, Output, Ran, Sandbox};

/// How long jobs have to end when the agent is stopped.
const END: Duration = Duration::from_secs(25);

/// Runs jobs as the user of this process.
pub struct Agent {
    sandbox: Arc<dyn Sandbox>,
    folder: PathBuf,
    users: BTreeSet<u32>,
    number: AtomicU64,
}

impl Agent {
    /// An agent that runs the jobs of servers of these users, in that sandbox, each in a folder of
    /// its own below `folder`. What an earlier agent has left there is removed.
    pub fn new(sandbox: Arc<dyn Sandbox>, folder: PathBuf, users: BTreeSet<u32>) -> Self {
        sandbox.sweep(&folder);
        Self { sandbox, folder, users, number: AtomicU64::new(1) }
    }

    /// Listens on a socket, which must not be the one of another agent that runs. Every user can
    /// connect; the kernel tells the agent who is connected.
    pub fn listen(socket: &Path) -> io::Result<UnixListener> {
        match std::os::unix::net::UnixStream::connect(socket) {
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another agent listens on it",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(socket)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(socket)?;
        std::fs::set_permissions(socket, Permissions::from_mode(0o666))?;
        Ok(listener)
    }

    /// Runs jobs until `stop` ends; then no process of a job is left.
    pub async fn serve(self: Arc<Self>, listener: UnixListener, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(false);
        let mut jobs = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = jobs.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        jobs.spawn(self.clone().accept(stream, stopped.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "could not accept a connection");
                        // Such as too many open files: until one of them is closed.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        stopping.send_replace(true);
        let ended = async { while jobs.join_next().await.is_some() {} };
        if tokio::time::timeout(END, ended).await.is_err() {
            // Such as a server that reads nothing. Dropped jobs end, too.
            jobs.shutdown().await;
        }
    }

    async fn accept(self: Arc<Self>, stream: UnixStream, stopped: watch::Receiver<bool>) {
        if let Err(error) = self.handle(stream, stopped).await {
            // Such as a server that was stopped.
            tracing::debug!(%error, "a connection of a server ended early");
        }
    }

    async fn handle(
        &self,
        stream: UnixStream,
        mut stopping: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let user = stream.peer_cred()?.uid();
        let (reader, mut writer) = stream.into_split();
        if !self.users.contains(&user) {
            tracing::warn!(user, "refused a connection of a user that is not allowed");
            let words =
                format!("it does not run checks for user {user}: start it with --allow-user");
            return Frame::of(Kind::Answer, &Answer::Refused(words))?.write(&mut writer).await;
        }
        let mut frames = Frames::of(reader);
        let agree = async {
            let request = tokio::time::timeout(PATIENCE, frames.expect(Kind::Request)).await??;
            let answer = self.answer(&request).await;
            Frame::of(Kind::Answer, &answer)?.write(&mut writer).await?;
            Ok::<_, io::Error>((request, answer))
        };
        let (request, answer) = tokio::select! {
            agreed = agree => agreed?,
            _ = stopping.wait_for(|stop| *stop) => return Err(stopped()),
        };
        let (Answer::Ready(_), Some(job)) = (answer, request.value::<Request>()?.job) else {
            return Ok(());
        };
        self.take(job, frames, writer, stopping).await
    }

    async fn answer(&self, request: &Frame) -> Answer {
        // Of another version perhaps nothing else can be read.
        #[derive(serde::Deserialize)]
        struct Version {
            protocol: u32,
        }
        match request.value::<Version>() {
            Ok(Version { protocol: PROTOCOL }) => {}
            Ok(Version { protocol }) => {
                return Answer::Refused(format!(
                    "it speaks version {PROTOCOL}, and the server {protocol}: run the same version of \
                     Signalbox"
                ));
            }
            Err(error) => return Answer::Refused(error.to_string()),
        }
        match self.sandbox.ready().await {
            Ok(ready) => Answer::Ready(ready),
            Err(refused) => Answer::Refused(refused.0),
        }
    }

    /// Runs a job, whose checkout comes first, and sends what it prints and leaves.
    async fn take(
        &self,
        mut job: Job,
        mut frames: Frames,
        mut writer: OwnedWriteHalf,
        mut stopping: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("job-{number}"));
        let made = spawn_blocking(move || JobFolder::new(&path)).await;
        let folder = made.map_err(io::Error::other)??;
        let ran = match receive(&mut frames, &folder, &mut stopping).await {
            Ok(()) => {
                job.environment.retain(|(name, _)| is_of_checks(name));
                let path = std::env::var_os("PATH").unwrap_or_default();
                job.environment.push(("PATH".to_owned(), path));
                self.run(job, &mut frames, &mut writer, &folder, &mut stopping).await
            }
            Err(error) => Err(NotRun::Machine(error)),
        };
        // The server may rely on it when it knows the result. Reports are open files.
        folder.clear().await;
        match ran {
            Ok(Ran { ended, reports: Collected { files, omitted, old } }) => {
                let ended: Result<Ended, NotRun> = Ok(ended);
                report(files, Done { ended: (&ended).into(), omitted, old }, &mut writer).await
            }
            Err(error) => {
                let ended: End = (&Err(error)).into();
                report(Vec::new(), Done { ended, omitted: 0, old: 0 }, &mut writer).await
            }
        }
    }

    /// Runs a job until it ends, the server is gone or does not want it, or the agent stops.
    async fn run(
        &self,
        job: Job,
        frames: &mut Frames,
        writer: &mut OwnedWriteHalf,
        folder: &JobFolder,
        stopping: &mut watch::Receiver<bool>,
    ) -> Result<Ran, NotRun> {
        let (sender, mut printed) = mpsc::unbounded_channel();
        let output = Output::sent_to(sender);
        let (stop, mut unwanted) = watch::channel(false);
        let run = async {
            let ran = self.sandbox.run(job, folder, &mut unwanted, &output).await;
            // Without it, what is printed has its end.
            drop(output);
            ran
        };
        let print = async {
            while let Some(bytes) = printed.recv().await {
                // A server that is gone ends the job below.
                if write(writer, Kind::Output, &bytes).await.is_err() {
                    break;
                }
            }
        };
        let both = async { tokio::join!(run, print).0 };
        tokio::pin!(both);
        tokio::select! {
            ran = &mut both => return ran,
            _ = frames.next() => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
        stop.send_replace(true);
        let ran = both.await;
        // The server must not mistake it for its own request.
        if *stopping.borrow() { Err(NotRun::Machine(stopped())) } else { ran }
    }
}

fn stopped() -> io::Error {
    io::Error::other("the agent was stopped")
}

/// Whether a variable is for a check alone: what starts it is outside of the sandbox, and a loader or an
/// engine would obey the others.
fn is_of_checks(name: &str) -> bool {
    let is_of_loader = name.starts_with("LD_") || name == "GLIBC_TUNABLES";
    name != "PATH" && !is_of_loader && !OF_ENGINES.contains(&name)
}

/// Unpacks the checkout that a server sends. When this returns, nothing is written any more.
async fn receive(
    frames: &mut Frames,
    folder: &JobFolder,
    stopping: &mut watch::Receiver<bool>,
) -> io::Result<()> {
    let (sender, pieces) = mpsc::channel(AHEAD);
    let checkout = folder.checkout();
    let unpacking = spawn_blocking(move || archive::unpack(pieces, &checkout));
    let passed_on = tokio::select! {
        passed_on = pass_on(frames, sender) => passed_on,
        _ = stopping.wait_for(|stop| *stop) => Err(stopped()),
    };
    let unpacked = unpacking.await.map_err(io::Error::other)?;
    passed_on.and(unpacked)
}

/// Passes the pieces of a checkout on, until it is whole or cannot be unpacked.
async fn pass_on(frames: &mut Frames, sender: mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    loop {
        let frame = frames.next().await?;
        let frame = frame.ok_or_else(|| io::Error::other("the server ended the connection"))?;
        match frame.kind {
            Kind::Bytes if sender.send(frame.bytes).await.is_err() => return Ok(()),
            Kind::Bytes => {}
            Kind::Whole => return Ok(()),
            kind => return Err(io::Error::other(format!("the server sent a frame {kind:?}"))),
        }
    }
}

/// Sends the reports and the result of a job.
async fn report(
    files: Vec<ReportFile>,
    mut done: Done,
    writer: &mut OwnedWriteHalf,
) -> io::Result<()> {
    for ReportFile { name, mut content } in files {
        let read = spawn_blocking(move || {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes).map(|_| bytes)
        });
        let Ok(Ok(bytes)) = read.await else {
            done.omitted += 1;
            continue;
        };
        let length = u64::try_from(bytes.len()).map_err(io::Error::other)?;
        Frame::of(Kind::Report, &Report { name, length })?.write(writer).await?;
        write(writer, Kind::Bytes, &bytes).await?;
    }
    Frame::of(Kind::Done, &done)?.write(writer).await
}
