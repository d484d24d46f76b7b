//! The disk of a repository with many tests, after the first run of all and for each further result.

use async_trait::async_trait;
use signalbox_domain::flaky::RunOutcome;
use signalbox_domain::ports::Clock;
use signalbox_services::ResultsSink;

use super::Operation;
use crate::database::{Fresh, On};
use crate::disk;
use crate::failure::{During, Failure};
use crate::flaky_data;
use crate::parts::SystemClock;
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::setup::Setup;

/// Tests of an upload.
const AT_ONCE: usize = 10_000;
/// The most bytes of a test after its first result: a million use 1 GB.
const FIRST_GOAL: f64 = 1_000.0;
/// Further results of each test, and between them what PostgreSQL does on its own within minutes: it
/// frees the space of replaced rows. So the first of them costs what a row has, and the others little.
const FURTHER: u32 = 10;
/// The most bytes of a further result.
const FURTHER_GOAL: f64 = 150.0;

/// Disk.
pub(crate) struct FlakyDisk;

#[async_trait(?Send)]
impl Operation for FlakyDisk {
    fn name(&self) -> &'static str {
        "flaky-disk"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            Box::pin(measure(setup, report, on)).await?;
        }
        Ok(())
    }
}

async fn measure(setup: &Setup, report: &mut Report, on: On) -> Result<(), Failure> {
    let tests = setup.most_tests();
    let fresh = Fresh::new(setup, on).await?;
    let product = Product::on(&fresh.database).await?;
    product.stores.flaky.tests.prepare_days(SystemClock.now()).await.during("partitions")?;
    let empty = disk::size(&fresh).await?;
    run_all(&product, tests, 1).await?;
    let first = disk::size(&fresh).await?;
    let tables = disk::tables(&fresh).await;
    for commit in 2..2 + u64::from(FURTHER) {
        run_all(&product, tests, commit).await?;
        if on == On::Postgres {
            fresh.floor.run_sql("VACUUM").await?;
        }
    }
    let later = disk::size(&fresh).await?;
    let each = |bytes: f64| bytes / f64::from(u32::try_from(tests).unwrap_or(u32::MAX));
    let data = format!("{}, {} tests", on.name(), count(tests));
    let row = |data: String, bytes: f64, goal: f64| {
        let row = Row::of("disk", data, bytes, "bytes");
        row.with_goal(&format!("≤ {goal} bytes"), bytes <= goal)
    };
    let (test, result) = (each(first - empty), each(later - first) / f64::from(FURTHER));
    report.add(row(format!("{data}: a test after its first result"), test, FIRST_GOAL));
    report.add(row(format!("{data}: a further result"), result, FURTHER_GOAL));
    if let (Some(before), Some(after)) = (tables, disk::tables(&fresh).await) {
        let grown = before.iter().zip(&after).map(|((table, before), (_, after))| {
            format!(
                "{table} {:.0} and {:.0}",
                each(*before),
                each(after - before) / f64::from(FURTHER)
            )
        });
        let grown: Vec<String> = grown.collect();
        report.note(format!(
            "{data}: bytes of a test after its first result, and of a further one, with indexes: {}.",
            grown.join(", ")
        ));
    }
    Ok(())
}

/// One result of every test, in several uploads.
async fn run_all(product: &Product, tests: usize, commit: u64) -> Result<(), Failure> {
    for from in (0..tests).step_by(AT_ONCE) {
        let names = (from..tests.min(from + AT_ONCE)).map(flaky_data::name);
        let runs = names.map(|it| flaky_data::run(product, &it, RunOutcome::Passed)).collect();
        let upload = flaky_data::upload(product, commit)?;
        product.api.flaky.service.take_in(&upload, runs).await.during("an upload")?;
    }
    Ok(())
}
