//! Processes of git that answer one request after the other: starting git costs more than most of
//! what it is started for. They only read objects and add new ones, so they never hold a lock.
//!
//! Every request may get no answer: then the caller runs git the ordinary way, which also reports
//! the problem.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::git::{Git, TIME_LIMIT};

/// How long a process waits for its next request. It learns of a changed configuration only when it
/// is started.
const IDLE: Duration = Duration::from_secs(10);
/// The most commits that are remembered.
const MOST_FORKS: usize = 4_096;
/// The most processes that wait.
const MOST_IDLE: usize = 16;
/// The most requests that one process answers, because git keeps what it has read.
const MOST_REQUESTS: u32 = 1_000;
/// The largest commit that is read, in bytes.
const MAX_COMMIT: usize = 1 << 20;

/// The arguments by which these processes are recognized.
pub(crate) const ARGUMENTS: [&[&str]; 2] = [
    &["cat-file", "--batch"],
    &["hash-object", "-w", "-t", "commit", "--no-filters", "--stdin-paths"],
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reader,
    Writer,
}

/// The processes that wait for requests, and what need not be requested again.
#[derive(Debug)]
pub(crate) struct Processes {
    idle: Mutex<Vec<Process>>,
    is_swept: AtomicBool,
    /// Commits that pull requests have forked from, by repository.
    pub(crate) forks: Cache<(PathBuf, String), ()>,
}

impl Default for Processes {
    fn default() -> Self {
        let (idle, is_swept) = (Mutex::default(), AtomicBool::default());
        Self { idle, is_swept, forks: Cache::new(MOST_FORKS) }
    }
}

#[derive(Debug)]
struct Process {
    kind: Kind,
    dir: PathBuf,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u32,
    since: Instant,
    /// Killed when it is dropped.
    _child: Child,
}

impl Processes {
    /// The content of a commit, by its full id.
    pub(crate) async fn commit(self: &Arc<Self>, git: &Git, id: &str) -> Option<Vec<u8>> {
        let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|it| it.is_ascii_hexdigit());
        if !is_id {
            return None;
        }
        let mut process = self.take(git, Kind::Reader)?;
        let content = tokio::time::timeout(TIME_LIMIT, process.read(id)).await.ok()??;
        self.put_back(process);
        Some(content)
    }

    /// The commits that these names stand for, or `None` for a name without an object.
    pub(crate) async fn named(
        self: &Arc<Self>,
        git: &Git,
        names: &[String],
    ) -> Option<Vec<Option<String>>> {
        let mut process = self.take(git, Kind::Reader)?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.push(tokio::time::timeout(TIME_LIMIT, process.named(name)).await.ok()??);
        }
        self.put_back(process);
        Some(found)
    }

    /// Writes a commit; its id.
    pub(crate) async fn write(self: &Arc<Self>, git: &Git, content: &[u8]) -> Option<String> {
        let mut process = self.take(git, Kind::Writer)?;
        let id = tokio::time::timeout(TIME_LIMIT, process.write(content)).await.ok()??;
        self.put_back(process);
        Some(id)
    }

    fn take(&self, git: &Git, kind: Kind) -> Option<Process> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = idle.iter().rposition(|it| it.kind == kind && it.dir == git.dir());
        if let Some(at) = waiting {
            return Some(idle.remove(at));
        }
        drop(idle);
        Process::start(git, kind)
    }

    fn put_back(self: &Arc<Self>, mut process: Process) {
        process.requests += 1;
        if process.requests >= MOST_REQUESTS {
            return;
        }
        process.since = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= MOST_IDLE {
            idle.remove(0);
        }
        idle.push(process);
        if self.is_swept.swap(true, Ordering::AcqRel) {
            return;
        }
        let processes = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE).await;
                let Some(processes) = processes.upgrade() else { return };
                if processes.sweep() {
                    return;
                }
            }
        });
    }

    /// Ends processes that have waited too long. Whether none is left.
    fn sweep(&self) -> bool {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|it| it.since.elapsed() < IDLE);
        let is_empty = idle.is_empty();
        if is_empty {
            self.is_swept.store(false, Ordering::Release);
        }
        is_empty
    }
}

impl Process {
    fn start(git: &Git, kind: Kind) -> Option<Self> {
        let [reader, writer] = ARGUMENTS;
        let args = match kind {
            Kind::Reader => reader,
            Kind::Writer => writer,
        };
        let mut command = git.command();
        let mut child =
            command.args(args).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let (dir, since) = (git.dir().to_owned(), Instant::now());
        Some(Self { kind, dir, input, output, requests: 0, since, _child: child })
    }

    /// The next line, without its end.
    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).await.ok()?;
        line.strip_suffix('\n').map(ToOwned::to_owned)
    }

    async fn request(&mut self, line: &str) -> Option<String> {
        self.input.write_all(format!("{line}\n").as_bytes()).await.ok()?;
        self.line().await
    }

    /// The content of a commit; `None` for anything else.
    async fn read(&mut self, id: &str) -> Option<Vec<u8>> {
        let about = self.request(id).await?;
        self.content(about.strip_prefix(id)?.strip_prefix(" commit ")?).await
    }

    /// The commit that a name stands for, if there is an object of that name.
    async fn named(&mut self, name: &str) -> Option<Option<String>> {
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        let about = self.request(name).await?;
        if about.strip_prefix(name) == Some(" missing") {
            return Some(None);
        }
        let (id, size) = about.split_once(" commit ")?;
        self.content(size).await?;
        Some(Some(id.to_owned()))
    }

    /// The content that follows.
    async fn content(&mut self, size: &str) -> Option<Vec<u8>> {
        let size: usize = size.parse().ok()?;
        if size > MAX_COMMIT {
            return None;
        }
        let mut content = vec![0; size + 1];
        self.output.read_exact(&mut content).await.ok()?;
        content.pop();
        Some(content)
    }

    async fn write(&mut self, content: &[u8]) -> Option<String> {
        // Removed at the end of each request, because a server may be killed while a process waits.
        let mut file = NamedTempFile::new().ok()?;
        file.write_all(content).ok()?;
        let path = file.path().to_str().filter(|path| !path.contains('\n'))?.to_owned();
        let id = self.request(&path).await?;
        (!id.is_empty()).then_some(id)
    }
}
