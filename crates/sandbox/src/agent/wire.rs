//! What a server and an agent send each other: frames of a kind, a length and bytes.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::archive::AHEAD;
use crate::{Ended, Job, NotRun, Ready};

/// The version of what follows. A server and an agent of different ones refuse each other.
pub(super) const PROTOCOL: u32 = 1;
/// The most bytes of a frame.
const MAX_FRAME: usize = 1024 * 1024;
/// How long the first frame may take.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// From the server: a [`Request`].
    Request = b'r',
    /// From the agent: an [`Answer`].
    Answer = b'a',
    /// Bytes of the checkout, or of a report.
    Bytes = b'b',
    /// From the server: the checkout is whole.
    Whole = b'w',
    /// From the agent: what the job printed.
    Output = b'o',
    /// From the agent: a [`Report`] begins, whose bytes follow.
    Report = b'f',
    /// From the agent: a [`Done`].
    Done = b'd',
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Request,
        Self::Answer,
        Self::Bytes,
        Self::Whole,
        Self::Output,
        Self::Report,
        Self::Done,
    ];

    const fn byte(self) -> u8 {
        self as u8
    }
}

/// A frame.
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

/// What a server wants: a job, or to know whether one would be run.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) protocol: u32,
    pub(super) job: Option<Job>,
}

/// Whether a job is run.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Ready(Ready),
    Refused(String),
}

/// A report that a job left.
#[derive(Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) length: u64,
}

/// How a job ended.
#[derive(Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) ended: End,
    /// How many reports were omitted, and how many are older than the job.
    pub(super) omitted: usize,
    pub(super) old: usize,
}

/// [`Ended`] or [`NotRun`].
#[derive(Serialize, Deserialize)]
pub(super) enum End {
    /// With that status as the system counts it.
    Exited(i32),
    TimedOut,
    Stopped,
    OverLimit(String),
    Unsupervised,
    NoProgram(String),
    NoMachine(String),
}

impl From<&Result<Ended, NotRun>> for End {
    fn from(ended: &Result<Ended, NotRun>) -> Self {
        match ended {
            Ok(Ended::Exited(status)) => Self::Exited(status.into_raw()),
            Ok(Ended::TimedOut) => Self::TimedOut,
            Ok(Ended::Stopped) => Self::Stopped,
            Ok(Ended::OverLimit(words)) => Self::OverLimit(words.clone()),
            Ok(Ended::Unsupervised) => Self::Unsupervised,
            Err(NotRun::Program(error)) => Self::NoProgram(error.to_string()),
            Err(NotRun::Machine(error)) => Self::NoMachine(error.to_string()),
        }
    }
}

impl From<End> for Result<Ended, NotRun> {
    fn from(end: End) -> Self {
        match end {
            End::Exited(status) => Ok(Ended::Exited(ExitStatus::from_raw(status))),
            End::TimedOut => Ok(Ended::TimedOut),
            End::Stopped => Ok(Ended::Stopped),
            End::OverLimit(words) => Ok(Ended::OverLimit(words)),
            End::Unsupervised => Ok(Ended::Unsupervised),
            End::NoProgram(words) => Err(NotRun::Program(io::Error::other(words))),
            End::NoMachine(words) => Err(NotRun::Machine(io::Error::other(words))),
        }
    }
}

impl Frame {
    pub(super) fn of<T: Serialize>(kind: Kind, value: &T) -> io::Result<Self> {
        Ok(Self { kind, bytes: serde_json::to_vec(value)? })
    }

    pub(super) fn value<T: DeserializeOwned>(&self) -> io::Result<T> {
        Ok(serde_json::from_slice(&self.bytes)?)
    }

    pub(super) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        write(to, self.kind, &self.bytes).await
    }
}

/// Writes bytes in one frame, or in as many as they need.
pub(super) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    kind: Kind,
    bytes: &[u8],
) -> io::Result<()> {
    let whole: &[&[u8]] = &[&[]];
    let pieces: Vec<&[u8]> = bytes.chunks(MAX_FRAME).collect();
    for piece in if pieces.is_empty() { whole } else { &pieces } {
        let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
        to.write_all(&[kind.byte()]).await?;
        to.write_all(&length.to_be_bytes()).await?;
        to.write_all(piece).await?;
    }
    Ok(())
}

/// Reads a frame; `None` at the end of the connection.
async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Frame>> {
    let kind = match from.read_u8().await {
        Ok(kind) => kind,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let kind = Kind::ALL.into_iter().find(|it| it.byte() == kind);
    let kind = kind.ok_or_else(|| io::Error::other("a frame of an unknown kind"))?;
    let length = usize::try_from(from.read_u32().await?).map_err(io::Error::other)?;
    if length > MAX_FRAME {
        return Err(io::Error::other("a frame is too long"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(Some(Frame { kind, bytes }))
}

/// The frames of a connection, read by a task of its own: waiting for one can be interrupted without
/// losing a part of it.
pub(super) struct Frames {
    frames: mpsc::Receiver<io::Result<Frame>>,
    /// Ended with this, so that the connection is closed.
    reader: JoinHandle<()>,
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Frames {
    pub(super) fn of(mut from: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let (sender, frames) = mpsc::channel(AHEAD);
        let reader = tokio::spawn(async move {
            while let Some(frame) = read(&mut from).await.transpose() {
                let is_last = frame.is_err();
                if sender.send(frame).await.is_err() || is_last {
                    break;
                }
            }
        });
        Self { frames, reader }
    }

    /// The next frame; `None` at the end of the connection.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        self.frames.recv().await.transpose()
    }

    /// The next frame, which must be of that kind.
    pub(super) async fn expect(&mut self, kind: Kind) -> io::Result<Frame> {
        match self.next().await? {
            Some(frame) if frame.kind == kind => Ok(frame),
            Some(frame) => Err(io::Error::other(format!("a frame of kind {:?}", frame.kind))),
            None => Err(io::Error::other("the connection was closed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    /// What is read is what was sent, up to the first frame that is broken or incomplete.
    #[test]
    fn fuzz_frames() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let words = [
            "o\0\0\0\u{1}x",
            "d\0\0",
            "\u{7f}",
            "\"Exited\":",
            "null",
            "-1",
            "1e99",
            "\0\u{10}\0\0",
        ];
        fuzz("agent-frames", &committed("agent-frames"), &words, |input| {
            runtime.block_on(async {
                let mut frames = Frames::of(io::Cursor::new(input.to_vec()));
                let mut written = Vec::new();
                let is_whole = loop {
                    match frames.next().await {
                        Ok(Some(frame)) => {
                            assert!(frame.bytes.len() <= MAX_FRAME);
                            read_any(&frame);
                            frame.write(&mut written).await.expect("written");
                        }
                        Ok(None) => break true,
                        Err(_) => break false,
                    }
                };
                assert!(input.starts_with(&written), "{} frames' bytes", written.len());
                assert_eq!(is_whole, input.len() == written.len());
            });
        });
    }

    fn read_any(frame: &Frame) {
        if let Ok(Done { ended, .. }) = frame.value() {
            drop(Result::<Ended, NotRun>::from(ended));
        }
        drop((frame.value::<Request>(), frame.value::<Answer>(), frame.value::<Report>()));
    }

    #[tokio::test]
    async fn frames_are_read_as_they_were_written() {
        let long = vec![7; MAX_FRAME + 1];
        let mut written = Vec::new();
        for bytes in [&b"one"[..], &[], &long] {
            write(&mut written, Kind::Output, bytes).await.expect("written");
        }
        let mut frames = Frames::of(io::Cursor::new(written));
        let mut lengths = Vec::new();
        while let Some(frame) = frames.next().await.expect("read") {
            assert_eq!(frame.kind, Kind::Output);
            lengths.push(frame.bytes.len());
        }
        assert_eq!(lengths, [3, 0, MAX_FRAME, 1]);
    }

    #[tokio::test]
    async fn what_is_no_frame_is_an_error() {
        for bytes in [&b"x\0\0\0\0"[..], b"o\xff\xff\xff\xff", b"o\0\0\0\x05abc", b"o\0"] {
            let mut frames = Frames::of(io::Cursor::new(bytes.to_vec()));
            assert!(frames.next().await.is_err(), "{bytes:?}");
        }
        let mut frames = Frames::of(io::Cursor::new(b"o\0\0\0\x01a".to_vec()));
        assert!(frames.expect(Kind::Done).await.is_err());
        assert!(frames.expect(Kind::Done).await.is_err(), "the end");
    }

    #[test]
    fn every_end_arrives_as_it_was_sent() {
        let words = || "why".to_owned();
        let ends: [Result<Ended, NotRun>; 7] = [
            Ok(Ended::Exited(ExitStatus::from_raw(256))),
            Ok(Ended::TimedOut),
            Ok(Ended::Stopped),
            Ok(Ended::OverLimit(words())),
            Ok(Ended::Unsupervised),
            Err(NotRun::Program(io::Error::other(words()))),
            Err(NotRun::Machine(io::Error::other(words()))),
        ];
        for ended in ends {
            let done = Done { ended: (&ended).into(), omitted: 1, old: 2 };
            let frame = Frame::of(Kind::Done, &done).expect("sent");
            let arrived: Done = frame.value().expect("read");
            let arrived: Result<Ended, NotRun> = arrived.ended.into();
            assert_eq!(format!("{arrived:?}"), format!("{ended:?}"));
        }
    }
}
