//! How a failed batch was bisected: each test run, and which part of the batch it tested.

use std::collections::BTreeMap;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{RunStatus, TestRun};
use signalbox_domain::time::Timestamp;
use signalbox_services::Bisection;
use signalbox_wording::Named;

use super::{QueueAddress, numbers};
use crate::model::{Block, Cell, Section, Table};
use crate::svg::{Piece, cells};
use crate::text::{ago, span};

/// The most test runs of parts that are drawn, the last ones.
const MOST: usize = 40;

/// The section; `None` if no part of the batch was tested.
pub(super) fn section(
    place: &QueueAddress,
    bisection: &Bisection,
    now: Timestamp,
) -> Option<Section> {
    let batch = &bisection.batch;
    if bisection.parts.is_empty() {
        return None;
    }
    let places: BTreeMap<PrNumber, usize> =
        batch.group.iter().enumerate().map(|(at, it)| (it.pr, at)).collect();
    let title = format!("Bisection of the batch in run {}", batch.number);
    let heads = ["#Run", "Result", "Tested together", "On top of", "Started", "Took"];
    let mut table = Table::new("bisection-table", &title, &heads);
    let mut rows = Vec::new();
    let omitted = bisection.parts.len().saturating_sub(MOST);
    for run in std::iter::once(batch).chain(bisection.parts.iter().skip(omitted)) {
        rows.push((format!("Run {}", run.number), pieces(run, &places)));
        table.push(
            run.number,
            vec![
                Cell::number(run.number),
                Cell::named(&run.status),
                Cell::text(numbers(tested(run))),
                Cell::text(numbers(contained(run, &places))),
                ago(run.started_at, now),
                Cell::text(span(run.ended_at.unwrap_or(now).since(run.started_at))),
            ],
        );
    }
    let labels = batch.group.iter().enumerate();
    let labels: Vec<(usize, String)> = labels.map(|(at, it)| (at, format!("#{}", it.pr))).collect();
    let mut chart = cells("bisection", &title, (batch.group.len(), &labels), &rows);
    chart.legend = vec![
        ("good", "passed".to_owned()),
        ("bad", "failed".to_owned()),
        ("active", "running".to_owned()),
        ("quiet", "cancelled".to_owned()),
        ("pale", "contained, tested by another run".to_owned()),
    ];
    let mut section = Section::new("bisection-part", title);
    if omitted > 0 {
        section = section.note(format!("the batch and the last {MOST} test runs of its parts"));
    }
    let links =
        tested(batch).take(super::ROWS).map(|pr| Cell::text(format!("#{pr}")).link(place.pr(pr)));
    Some(section.with(Block::Chart(Box::new(chart), table)).with(Block::Links(links.collect())))
}

fn tested(run: &TestRun) -> impl Iterator<Item = PrNumber> {
    run.group.iter().map(|it| it.pr)
}

/// The pull requests of the batch that a run contains and does not test.
fn contained(run: &TestRun, places: &BTreeMap<PrNumber, usize>) -> impl Iterator<Item = PrNumber> {
    run.ahead.iter().map(|(_, pr)| *pr).filter(|pr| places.contains_key(pr))
}

/// What a run tests, and what it contains besides.
fn pieces(run: &TestRun, places: &BTreeMap<PrNumber, usize>) -> Vec<Piece> {
    let class = match run.status {
        RunStatus::Building | RunStatus::Testing => "active",
        RunStatus::Passed => "good",
        RunStatus::Failed { .. } => "bad",
        RunStatus::Cancelled { .. } => "quiet",
    };
    let columns = |prs: &mut dyn Iterator<Item = PrNumber>| {
        let mut columns: Vec<usize> = prs.filter_map(|pr| places.get(&pr).copied()).collect();
        columns.sort_unstable();
        columns.chunk_by(|one, next| one + 1 == *next).map(<[usize]>::to_vec).collect::<Vec<_>>()
    };
    let label = run.status.named().label;
    let piece = |columns: &[usize], class, what: String, title: String| {
        let (first, last) = (*columns.first()?, *columns.last()?);
        Some(Piece { from: first, to: last + 1, class, what, title })
    };
    let own = columns(&mut tested(run));
    let own = own.iter().filter_map(|it| {
        let title = format!("Run {}: {}: {label}", run.number, numbers(tested(run)));
        piece(it, class, label.to_owned(), title)
    });
    let ahead = columns(&mut contained(run, places));
    let title = || format!("Run {} is on top of {}", run.number, numbers(contained(run, places)));
    let ahead = ahead.iter().filter_map(|it| piece(it, "pale", String::new(), title()));
    ahead.chain(own).collect()
}
