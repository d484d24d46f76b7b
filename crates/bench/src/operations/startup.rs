//! The release program: how soon it is ready, and how much memory it holds when nothing happens.

use std::time::Duration;

use async_trait::async_trait;

use super::Operation;
use crate::failure::Failure;
use crate::measure::median;
use crate::process::{Running, program};
use crate::report::{Report, Row};
use crate::setup::Setup;

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
        let Some(program) = program()? else {
            report.note("startup: skipped, there is no release program.".to_owned());
            return Ok(());
        };
        let (mut new, mut known, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setup.rounds {
            let folder = setup.folder()?;
            let start = || Running::start(&program, folder.path(), "sqlite://bench.db");
            new.push(start().await?.ready_after);
            let server = start().await?;
            known.push(server.ready_after);
            tokio::time::sleep(REST).await;
            memory.push(server.memory()?.resident);
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
