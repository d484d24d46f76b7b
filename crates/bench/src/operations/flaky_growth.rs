//! Uploads over weeks with the clock moved: what an upload costs when there is much history, and how
//! much disk a result uses.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use signalbox_conformance::stores::Scenario;
use signalbox_domain::flaky::{ReportedFailure, ReportedRun};
use signalbox_domain::time::Span;
use signalbox_services::{FlakyService, ResultsSink};

use super::Operation;
use crate::database::{Fresh, On};
use crate::disk;
use crate::failure::{During, Failure};
use crate::measure::median;
use crate::process::{Memory, own_cpu};
use crate::report::{Report, Row, count};
use crate::setup::{Growth, Setup};

/// Days at the beginning and at the end that are compared, after the first day.
const COMPARED: usize = 3;
/// The most that later days may cost of what early days cost, and the least.
const FLAT: (f64, f64) = (0.8, 1.2);
/// The most bytes of a further result on disk.
const BYTES_GOAL: f64 = 150.0;
/// Days for which history is kept.
const HISTORY_DAYS: u32 = 45;

/// Growth with history.
pub(crate) struct FlakyGrowth;

/// What a day cost.
struct Day {
    /// Milliseconds of CPU time of an upload.
    cpu: f64,
    /// Milliseconds of an upload.
    wall: f64,
    /// The peak of the memory, in MiB.
    peak: f64,
}

#[async_trait(?Send)]
impl Operation for FlakyGrowth {
    fn name(&self) -> &'static str {
        "flaky-growth"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            Box::pin(grow(setup, report, on)).await?;
        }
        Ok(())
    }
}

async fn grow(setup: &Setup, report: &mut Report, on: On) -> Result<(), Failure> {
    let Growth { days, uploads, tests } = setup.growth;
    let fresh = Fresh::new(setup, on).await?;
    let stores = fresh.database.stores();
    let mut scenario = Scenario::new(&stores, "acme").await;
    // Scenarios count uploads in tiny parts, so that tests have several.
    scenario.service = scenario.service.in_parts_of(FlakyService::RUNS_OF_A_PART);
    scenario.service.prepare_days().await.during("partitions")?;
    scenario.clock.advance(Span::seconds(1));
    upload(&scenario, 0, tests, true).await?;
    let first = disk::size(&fresh).await?;
    let mut measured = Vec::new();
    for day in 0..days {
        Memory::forget_peak()?;
        let (cpu, mut wall) = (own_cpu()?, Duration::ZERO);
        for number in 0..uploads {
            let begun = Instant::now();
            scenario.clock.advance(Span::minutes((24 * 60 / uploads).max(1)));
            upload(&scenario, 1 + day * uploads + number, tests, false).await?;
            let service = &scenario.service;
            while service.measure().await.during("a look")? == FlakyService::AT_ONCE {}
            wall += begun.elapsed();
            // What PostgreSQL does on its own within minutes, where minutes take minutes.
            if on == On::Postgres {
                fresh.floor.run_sql("VACUUM test_cases, packed_runs").await?;
            }
        }
        let (cpu, wall) = (own_cpu()? - cpu, wall.as_secs_f64());
        let each = |seconds: f64| seconds * 1_000.0 / f64::from(uploads);
        measured.push(Day { cpu: each(cpu), wall: each(wall), peak: Memory::own()?.peak });
        scenario.service.prepare_days().await.during("partitions")?;
        while scenario.service.prune(Span::days(HISTORY_DAYS)).await.during("old results")? > 0 {}
    }
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let data = format!(
        "{}, {} tests of which half failed once, {days} days × {uploads} uploads",
        on.name(),
        count(size(tests))
    );
    flat(report, &data, "CPU of an upload", "ms", &values(&measured, |it| it.cpu));
    flat(report, &data, "time of an upload", "ms", &values(&measured, |it| it.wall));
    flat(report, &data, "peak of the memory", "MiB", &values(&measured, |it| it.peak));
    let kept = f64::from(days.min(HISTORY_DAYS)) * f64::from(uploads) * f64::from(tests);
    let bytes = (disk::size(&fresh).await? - first) / kept;
    let row = Row::of("growth", format!("{data}: disk of a further result"), bytes, "bytes");
    report.add(row.with_goal(&format!("≤ {BYTES_GOAL} bytes"), bytes <= BYTES_GOAL));
    Ok(())
}

fn values(days: &[Day], value: fn(&Day) -> f64) -> Vec<f64> {
    days.iter().map(value).collect()
}

/// Compares the first days, without the very first one, with the last ones.
fn flat(report: &mut Report, data: &str, what: &str, unit: &'static str, days: &[f64]) {
    let early = days.iter().skip(1).take(COMPARED).copied().collect::<Vec<_>>();
    let late = days.iter().rev().take(COMPARED).copied().collect::<Vec<_>>();
    let (early, late) = (median(&early), median(&late));
    report.add(Row::of("growth", format!("{data}: {what}, days 2 to 4"), early, unit));
    report.add(Row::of("growth", format!("{data}: {what}, last 3 days"), late, unit));
    let grown = late / early;
    let row = Row::of("growth", format!("{data}: {what}, late ÷ early"), grown, "×");
    let goal = format!("{} to {} ×", FLAT.0, FLAT.1);
    report.add(row.with_goal(&goal, FLAT.0 <= grown && grown <= FLAT.1));
}

/// Uploads results of all tests on a commit of their own; at first half of them fail.
async fn upload(
    scenario: &Scenario<'_>,
    commit: u32,
    tests: u32,
    is_first: bool,
) -> Result<(), Failure> {
    let run = |test: u32| {
        let fails = is_first && test.is_multiple_of(2);
        let run = scenario.run(&format!("test number {test:06}"), !fails);
        let message = format!("sum {test} is wrong");
        let failure = fails.then(|| ReportedFailure { message, text: String::new() });
        ReportedRun { failure, ..run }
    };
    let runs = (0..tests).map(run).collect();
    scenario.service.take_in(&scenario.upload(commit), runs).await.during("an upload").map(drop)
}
