//! The planner alone: steps of a queue in memory.

mod days;
mod line;

use std::time::Duration;

use async_trait::async_trait;
use signalbox_domain::queue::Mode;

use super::Operation;
use crate::failure::Failure;
use crate::measure::{median, micros_each};
use crate::report::{Report, Row, count};
use crate::setup::Setup;
use line::{Line, Shape};

/// Few pull requests share one of 100 targets, or nearly all do.
const UNIVERSES: [(&str, u64); 2] = [("sparse", 100_000), ("dense", 2_000)];
/// Pull requests that are live at a time.
const SIZES: [usize; 3] = [100, 1_000, 10_000];
/// The size that the goal is about, and the goal in steps a second.
const GOAL: (usize, f64) = (1_000, 20_000.0);
/// Slots; twice as many pull requests are live.
const WINDOWS: [u32; 4] = [50, 100, 200, 500];
/// How much the cost of a step may grow.
const FLAT: f64 = 1.5;
/// How long the slowest step of a queue of batches may take.
const SLOWEST: Duration = Duration::from_millis(2);
/// How long a round lasts.
const ROUND: Duration = Duration::from_millis(600);
/// The time limit for filling a queue of one size.
const FILL: Duration = Duration::from_secs(20);

/// The planner alone.
pub(crate) struct Planner;

#[async_trait(?Send)]
impl Operation for Planner {
    fn name(&self) -> &'static str {
        "planner"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for (kind, universe) in UNIVERSES {
            let shape =
                Shape { mode: Mode::Parallel, slots: 50, batch: 1, targets: (100, universe) };
            by_size(setup, report, kind, shape)?;
        }
        for (kind, mode) in [("SINGLE", Mode::Single), ("PARALLEL", Mode::Parallel)] {
            by_window(setup, report, kind, mode)?;
        }
        for (kind, mode) in [("SINGLE", Mode::Single), ("PARALLEL", Mode::Parallel)] {
            of_batches(setup, report, kind, mode)?;
        }
        days::simulate(setup, report)
    }
}

/// Steps a second by the number of live pull requests.
fn by_size(setup: &Setup, report: &mut Report, kind: &str, shape: Shape) -> Result<(), Failure> {
    let mut costs = Vec::new();
    for size in setup.sizes(&SIZES) {
        let data = format!("{} entries, {kind} targets", count(*size));
        let Some(Measured { cost, .. }) = measured(setup, report, &data, shape, *size)? else {
            continue;
        };
        let row = Row::of("planner", data, 1e6 / cost, "steps/s");
        let (of_size, steps) = GOAL;
        let with_goal = |row: Row| row.with_goal("≥ 20,000", 1e6 / cost >= steps);
        report.add(if *size == of_size { with_goal(row) } else { row });
        costs.push((*size, cost));
    }
    for pair in costs.windows(2) {
        let [(small, cheap), (large, dear)] = pair else { continue };
        let data = format!("{kind}: cost at {} entries ÷ cost at {}", count(*large), count(*small));
        report.add(Row::of("planner", data, dear / cheap, "×"));
    }
    Ok(())
}

/// The cost of a step by the number of slots.
fn by_window(setup: &Setup, report: &mut Report, kind: &str, mode: Mode) -> Result<(), Failure> {
    let mut first = None;
    for slots in setup.sizes(&WINDOWS) {
        let shape = Shape { mode, slots: *slots, batch: 1, targets: (100, 100_000) };
        let data = format!("{kind}, {slots} slots: a step");
        let size = 2 * usize::try_from(*slots).unwrap_or(usize::MAX);
        let Some(Measured { cost, .. }) = measured(setup, report, &data, shape, size)? else {
            continue;
        };
        report.add(Row::of("planner", data, cost, "µs"));
        let (fewest, cheap) = *first.get_or_insert((slots, cost));
        if fewest != slots {
            let data = format!("{kind}: cost at {slots} slots ÷ cost at {fewest}");
            let grown = cost / cheap;
            let row = Row::of("planner", data, grown, "×");
            report.add(row.with_goal("≤ 1.5 ×", grown <= FLAT));
        }
    }
    Ok(())
}

/// The cost of a step by the number of pull requests that wait for batches of ten.
fn of_batches(setup: &Setup, report: &mut Report, kind: &str, mode: Mode) -> Result<(), Failure> {
    let mut first = None;
    for size in setup.sizes(&SIZES) {
        let shape = Shape { mode, slots: 10, batch: 10, targets: (1, 20) };
        let data = format!("{kind}, batches of 10, {} entries: a step", count(*size));
        let found = measured(setup, report, &data, shape, *size)?;
        let Some(Measured { cost, slowest }) = found else { continue };
        report.add(Row::of("planner", data, cost, "µs"));
        let data = format!("{kind}, batches of 10, {} entries: the slowest step", count(*size));
        let row = Row::of("planner", data, slowest.as_secs_f64() * 1e3, "ms");
        report.add(row.with_goal("≤ 2 ms", slowest <= SLOWEST));
        let (fewest, cheap) = *first.get_or_insert((size, cost));
        if fewest != size {
            let (large, small) = (count(*size), count(*fewest));
            let data = format!("{kind}, batches of 10: cost at {large} entries ÷ cost at {small}");
            let grown = cost / cheap;
            let row = Row::of("planner", data, grown, "×");
            report.add(row.with_goal("≤ 1.5 ×", grown <= FLAT));
        }
    }
    Ok(())
}

/// The cost of a step in microseconds, and the slowest step: medians of the rounds.
struct Measured {
    cost: f64,
    slowest: Duration,
}

/// Measures one size; returns nothing when the queue could not be filled in time.
fn measured(
    setup: &Setup,
    report: &mut Report,
    data: &str,
    shape: Shape,
    size: usize,
) -> Result<Option<Measured>, Failure> {
    let mut line = Line::new(shape, None)?;
    let mut filling = Duration::ZERO;
    while line.queue.live() < size {
        filling += line.step(size)?;
        if filling > FILL {
            let reached = count(line.queue.live());
            report.note(format!(
                "{data}: not measured, only {reached} were submitted within {} s.",
                FILL.as_secs()
            ));
            return Ok(None);
        }
    }
    let lasts = if setup.quick { ROUND / 6 } else { ROUND };
    let (mut costs, mut slowest) = (Vec::new(), Vec::new());
    // The first round fills the slots and is not counted.
    for round in 0..=setup.rounds {
        line.costs.clear();
        line.slowest = Duration::ZERO;
        let (mut steps, mut took) = (0, Duration::ZERO);
        while took < lasts {
            took += line.step(size)?;
            steps += 1;
        }
        if round > 0 {
            costs.push(micros_each(took, steps));
            slowest.push(line.slowest);
        }
    }
    slowest.sort_unstable();
    let slowest = slowest.get(slowest.len() / 2).copied().unwrap_or_default();
    report.note(format!("{data}: {}.", line.cost_summary()));
    Ok(Some(Measured { cost: median(&costs), slowest }))
}
