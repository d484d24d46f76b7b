//! The release program: how soon it is ready, and how much memory it holds when nothing happens.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::Operation;
use crate::failure::{During, Failure};
use crate::load::{self, Client};
use crate::measure::median;
use crate::report::{Report, Row};
use crate::setup::Setup;

/// The longest that a server may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a server rests before its memory is read.
const REST: Duration = Duration::from_secs(2);
/// Milliseconds until it is ready, and MiB when nothing happens.
const GOALS: (f64, f64) = (1_000.0, 60.0);

/// Start and rest of the release program.
pub(crate) struct Startup;

#[async_trait(?Send)]
impl Operation for Startup {
    fn name(&self) -> &'static str {
        "startup"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        let own = std::env::current_exe().during("this program")?;
        let program = own.with_file_name("signalbox");
        if !program.exists() {
            report.note(format!("startup: skipped, there is no {}.", program.display()));
            return Ok(());
        }
        let (mut new, mut known, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setup.rounds {
            let folder = setup.folder()?;
            drop(started(&program, folder.path(), &mut new).await?);
            let server = started(&program, folder.path(), &mut known).await?;
            tokio::time::sleep(REST).await;
            memory.push(server.resident()?);
        }
        for (data, rounds) in [("SQLite, new file", new), ("SQLite, file that is there", known)] {
            let millis = median(&rounds);
            let row = Row::of("start to ready", data.to_owned(), millis, "ms");
            report.add(row.with_goal("≤ 1 s", millis <= GOALS.0));
        }
        let held = median(&memory);
        let row = Row::of("memory at rest", "SQLite, no queues".to_owned(), held, "MiB");
        report.add(row.with_goal("≤ 60 MiB", held <= GOALS.1));
        Ok(())
    }
}

/// A server process, killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Running {
    /// Resident memory in MiB, as Linux tells it.
    fn resident(&self) -> Result<f64, Failure> {
        let path = PathBuf::from(format!("/proc/{}/status", self.0.id()));
        let status = std::fs::read_to_string(&path).during("the server's memory")?;
        let kibibytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next())
            .and_then(|it| it.parse::<u32>().ok())
            .ok_or_else(|| Failure::new("the server's memory", "is not told"))?;
        Ok(f64::from(kibibytes) / 1024.0)
    }
}

/// Starts a server in a folder and adds the milliseconds until it answered that it is ready.
async fn started(program: &Path, folder: &Path, millis: &mut Vec<f64>) -> Result<Running, Failure> {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").during("a port")?;
        listener.local_addr().during("a port")?
    };
    let begun = Instant::now();
    let child = Command::new(program)
        .current_dir(folder)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .args(["--database", "sqlite://bench.db", "--data-dir", "data"])
        .args(["serve", "--listen", &address.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .during("the server")?;
    let mut running = Running(child);
    let ready = load::get("/readyz", "");
    loop {
        if let Ok(mut client) = Client::to(address).await
            && client.one(&ready).await.is_ok()
        {
            millis.push(begun.elapsed().as_secs_f64() * 1e3);
            return Ok(running);
        }
        if let Some(status) = running.0.try_wait().during("the server")? {
            return Err(Failure::new("the server", format!("ended at once: {status}")));
        }
        if begun.elapsed() > PATIENCE {
            return Err(Failure::new("the server", "is not ready after half a minute"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
