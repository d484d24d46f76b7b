//! The release program as a process of its own, and the memory of processes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{During, Failure};
use crate::load::{self, Client};

/// The time limit of a server before the run fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The release program beside this one, if it was built.
pub(crate) fn program() -> Result<Option<PathBuf>, Failure> {
    let own = std::env::current_exe().during("this program")?;
    Ok(Some(own.with_file_name("signalbox")).filter(|it| it.exists()))
}

/// A server process, killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Milliseconds until it answered that it is ready.
    pub(crate) ready_after: f64,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Running {
    /// Starts a server in a folder, on the database of that URL, and waits until it is ready.
    pub(crate) async fn start(
        program: &Path,
        folder: &Path,
        database: &str,
    ) -> Result<Self, Failure> {
        Self::start_with(program, folder, database, &[]).await
    }

    /// The same with variables of its environment.
    pub(crate) async fn start_with(
        program: &Path,
        folder: &Path,
        database: &str,
        environment: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let address = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").during("a port")?;
            listener.local_addr().during("a port")?
        };
        let begun = Instant::now();
        let child = Command::new(program)
            .current_dir(folder)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(environment.iter().copied())
            .args(["--database", database, "--data-dir", "data"])
            .args(["serve", "--listen", &address.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .during("the server")?;
        let mut running = Self { child, address, ready_after: 0.0 };
        let ready = load::get("/readyz", "");
        loop {
            if let Ok(mut client) = Client::to(address).await
                && client.one(&ready).await.is_ok()
            {
                running.ready_after = begun.elapsed().as_secs_f64() * 1e3;
                return Ok(running);
            }
            if let Some(status) = running.child.try_wait().during("the server")? {
                return Err(Failure::new("the server", format!("exited immediately: {status}")));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Failure::new("the server", "is not ready after half a minute"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Seconds of its CPU time, and of the processes that it has started and that have ended. Those of git that
    /// stay are not included.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        cpu(&self.child.id().to_string(), 4)
    }

    /// Its memory.
    pub(crate) fn memory(&self) -> Result<Memory, Failure> {
        Memory::of(&self.child.id().to_string())
    }
}

/// The ticks of a second in which Linux reports CPU time.
const TICKS: f64 = 100.0;

/// Seconds of CPU time of this process.
pub(crate) fn own_cpu() -> Result<f64, Failure> {
    cpu("self", 2)
}

/// The first fields of a process's CPU time: user, system, and the same of ended child processes.
fn cpu(process: &str, fields: usize) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    let stat = stat.during("the CPU time of a process")?;
    let all = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u32 = all.skip(11).take(fields).filter_map(|it| it.parse::<u32>().ok()).sum();
    Ok(f64::from(ticks) / TICKS)
}

/// Resident memory of a process in MiB, as Linux reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Now.
    pub(crate) resident: f64,
    /// The most since the process began or [`Memory::forget_peak`].
    pub(crate) peak: f64,
}

impl Memory {
    /// This process's.
    pub(crate) fn own() -> Result<Self, Failure> {
        Self::of("self")
    }

    /// Resets the memory peak of this process.
    pub(crate) fn forget_peak() -> Result<(), Failure> {
        std::fs::write("/proc/self/clear_refs", "5").during("this program's memory")
    }

    fn of(process: &str) -> Result<Self, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.during("the memory of a process")?;
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes = value.and_then(|it| it.split_whitespace().next()?.parse::<u32>().ok());
            let kibibytes =
                kibibytes.ok_or_else(|| Failure::new("the memory of a process", "is missing"))?;
            Ok::<_, Failure>(f64::from(kibibytes) / 1024.0)
        };
        Ok(Self { resident: field("VmRSS:")?, peak: field("VmHWM:")? })
    }
}
