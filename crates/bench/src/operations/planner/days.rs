//! Thirty simulated days: 500 pull requests an hour, checks of four to six minutes.

use std::time::Instant;

use signalbox_domain::queue::Mode;
use signalbox_domain::time::Span;

use super::line::{Delays, Line, Shape};
use crate::failure::Failure;
use crate::report::{Report, Row, count};
use crate::setup::Setup;

/// Simulated days.
const DAYS: u32 = 30;
/// Pull requests that are submitted in an hour.
const AN_HOUR: u32 = 500;
/// The time between two of them.
const BETWEEN: Span = Span::from_micros(7_200_000);
/// The most seconds that the goal allows.
const GOAL: f64 = 5.0;

/// Lets the days pass for queues that keep up.
pub(super) fn simulate(setup: &Setup, report: &mut Report) -> Result<(), Failure> {
    let single = Shape { mode: Mode::Single, slots: 50, batch: 1, targets: (0, 1) };
    let queues = [
        ("SINGLE, 50 slots", single),
        ("SINGLE, 10 slots, batches of 10", Shape { slots: 10, batch: 10, ..single }),
        (
            "PARALLEL, 50 slots, 3 targets of 200",
            Shape { mode: Mode::Parallel, targets: (3, 200), ..single },
        ),
    ];
    let (hours, time) = if setup.quick {
        (4, "4 simulated hours".to_owned())
    } else {
        (24 * DAYS, format!("{DAYS} simulated days"))
    };
    for (kind, shape) in queues {
        let mut line = Line::new(shape, Some(Delays { host: 1, checks: (240, 120) }))?;
        let begun = Instant::now();
        for _ in 0..hours * AN_HOUR {
            line.submit()?;
            let submitted = line.at.plus(BETWEEN);
            while let Some(next) = line.next().filter(|next| *next <= submitted) {
                line.at = next.max(line.at);
                line.happen()?;
            }
            line.at = submitted;
        }
        let took = begun.elapsed().as_secs_f64();
        let row = Row::of("planner", format!("{kind}: {time}"), took, "s");
        report.add(if setup.quick { row } else { row.with_goal("≤ 5 s", took <= GOAL) });
        let (landed, left) = (count(line.ended), count(line.queue.live()));
        report
            .note(format!("{kind}: {landed} pull requests landed, {left} were left in the queue."));
    }
    Ok(())
}
