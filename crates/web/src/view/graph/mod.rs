//! The graph of a queue: which pull requests are tested on top of which, in lanes and batches.

mod drawing;
mod layout;
mod units;

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{EntryView, PrState, QueueView};
use signalbox_wording::Named;

use super::{QueueAddress, numbers};
use crate::model::{Block, Cell, Page, Section, Table};
use units::{Drawn, MOST, Unit};

/// The most lanes with a link.
const LINKED_LANES: usize = 12;

/// How a visitor wants the graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// `large` or `small`; otherwise what suits the number of test runs.
    pub(crate) size: String,
    /// `folded` or `unfolded`; otherwise what suits the number of test runs.
    pub(crate) lanes: String,
    /// Only the lane of this pull request.
    pub(crate) lane: Option<PrNumber>,
}

/// Links to other ways of drawing the graph.
fn ways(place: &QueueAddress, drawn: &Drawn<'_>, wanted: &Wanted) -> Vec<Cell> {
    let path = place.path("queue/graph");
    let lane = wanted.lane.map_or_else(String::new, |pr| format!("&lane={pr}"));
    let folding = match (drawn.lanes.is_empty(), drawn.is_folded) {
        (true, _) => "",
        (false, true) => "&lanes=folded",
        (false, false) => "&lanes=unfolded",
    };
    let size = if drawn.is_large { "large" } else { "small" };
    let way = |label: &str, is_current: bool, more: String| {
        Cell::text(label).maybe_link((!is_current).then(|| format!("{path}{more}")))
    };
    let mut ways = vec![
        way("Large boxes", drawn.is_large, format!("&size=large{folding}{lane}")),
        way("Small boxes", !drawn.is_large, format!("&size=small{folding}{lane}")),
    ];
    if !drawn.lanes.is_empty() {
        let (label, other) = if drawn.is_folded {
            ("Unfold the lanes", "unfolded")
        } else {
            ("Fold the lanes", "folded")
        };
        ways.push(way(label, false, format!("&size={size}&lanes={other}")));
    }
    if wanted.lane.is_some() {
        ways.push(way("All lanes", false, String::new()));
    }
    for lane in drawn.lanes.iter().take(LINKED_LANES) {
        let label = format!("Lane of #{} ({} test runs)", lane.first, lane.runs);
        ways.push(way(&label, false, format!("&lane={}", lane.last)));
    }
    ways
}

/// What the picture omits, or abbreviates.
fn notes(drawn: &Drawn<'_>, wanted: &Wanted) -> Vec<String> {
    let mut notes = Vec::new();
    if drawn.omitted > 0 {
        notes.push(format!(
            "At most {MOST} pull requests are drawn: {} more are in test runs. The queue page lists all of them.",
            drawn.omitted
        ));
    }
    if !drawn.is_large && drawn.units.iter().any(|it| it.entries.len() > 1) {
        let what = if drawn.is_folded { "a batch or a folded lane" } else { "a batch" };
        notes.push(format!("#7 +3 is {what}: #7 and 3 other pull requests."));
    }
    if let Some(pr) = wanted.lane {
        notes.push(if drawn.units.is_empty() {
            format!("#{pr} is not in a test run, so it has no lane.")
        } else {
            format!("Only the lane of #{pr} is shown.")
        });
    }
    notes
}

/// The page.
pub(crate) fn page(place: &QueueAddress, view: &QueueView<'_>, wanted: &Wanted) -> Page {
    let drawn = Drawn::of(view, wanted);
    let table = table(place, &drawn);
    let mut section = Section::plain("picture");
    for note in notes(&drawn, wanted) {
        section = section.with(Block::Text(note));
    }
    if !drawn.units.is_empty() || wanted.lane.is_some() {
        section = section.with(Block::Links(ways(place, &drawn, wanted)));
    }
    if !table.rows.is_empty() {
        let chart = drawing::chart(&drawn, place);
        section = section.with(Block::Chart(Box::new(chart), table));
    } else if wanted.lane.is_none() {
        section = section.with(Block::Table(table));
    }
    Page {
        title: format!("Graph: {}", place.name()),
        heading: "Graph".to_owned(),
        above: vec![
            Cell::text("Queues").link("/"),
            Cell::text(place.name()).link(place.path("queue")),
        ],
        menu: place.menu("queue/graph"),
        topic: format!("queue:{}", view.queue.header.id),
        version: view.queue.header.sequence,
        sections: vec![section],
        curl: place.curl("getQueue", ""),
        ..Page::default()
    }
}

/// The same content as the picture.
fn table(place: &QueueAddress, drawn: &Drawn<'_>) -> Table {
    let mut table = Table::new(
        "graph-table",
        "Which pull requests are tested on top of which",
        &["#Position", "Pull request", "State", "Tested together", "On top of"],
    )
    .empty("No pull request is in the line.");
    for unit in &drawn.units {
        if unit.is_lane() {
            table.push(format!("lane-{}", table.rows.len()), lane_row(place, unit));
        } else {
            for entry in &unit.entries {
                table.push(entry.entry.pr, entry_row(place, entry, Some(unit)));
            }
        }
    }
    if drawn.has_single_waiting() {
        for entry in &drawn.waiting {
            table.push(entry.entry.pr, entry_row(place, entry, None));
        }
    } else if !drawn.waiting.is_empty() {
        let waiting = format!("{} pull requests", drawn.waiting.len());
        let mut row = vec![Cell::text(waiting).link(waiting_path(place))];
        row.push(Cell::named(&PrState::Pending));
        row.insert(0, Cell::number("–"));
        row.extend([Cell::text("–"), Cell::text("–")]);
        table.push("waiting", row);
    }
    table
}

/// The list of the waiting pull requests.
fn waiting_path(place: &QueueAddress) -> String {
    format!("{}&stage=waiting", place.path("queue"))
}

fn lane_row(place: &QueueAddress, unit: &Unit<'_>) -> Vec<Cell> {
    let first = unit.entries.first().map(|it| it.entry.pr.to_string()).unwrap_or_default();
    let last = unit.entries.last().map(|it| it.entry.pr.to_string()).unwrap_or_default();
    let lane = Cell::text(format!("Lane of #{first}, {} test runs", unit.runs));
    vec![
        Cell::number("–"),
        lane.link(format!("{}&lane={last}", place.path("queue/graph"))),
        Cell::text(counted(&unit.entries)),
        Cell::text("–"),
        Cell::text("–"),
    ]
}

fn entry_row(place: &QueueAddress, entry: &EntryView<'_>, unit: Option<&Unit<'_>>) -> Vec<Cell> {
    let run = unit.and_then(|it| it.run);
    let together = run.into_iter().flat_map(|it| it.group.iter().map(|it| it.pr));
    let ahead = run.into_iter().flat_map(|it| it.ahead.iter().map(|(_, pr)| *pr));
    let position = entry.position.map_or_else(|| "–".to_owned(), |it| it.to_string());
    vec![
        Cell::number(position),
        super::queue::titled(entry.entry, place),
        Cell::named(&entry.state),
        Cell::text(numbers(together)),
        Cell::text(numbers(ahead)),
    ]
}

/// The class of a box for pull requests in these states.
fn class(states: impl Iterator<Item = PrState>) -> &'static str {
    let states: BTreeSet<&str> = states
        .map(|state| match state {
            PrState::PendingFailure | PrState::Failed => "node-warning",
            PrState::TestsPassed | PrState::Merged => "node-good",
            PrState::Testing => "node-active",
            PrState::NotReady | PrState::Pending | PrState::Cancelled => "node",
        })
        .collect();
    ["node-warning", "node-active", "node-good"]
        .into_iter()
        .find(|class| states.contains(class))
        .unwrap_or("node")
}

/// How many of some pull requests are in each state: `2 passed, 1 testing`.
fn counted(entries: &[&EntryView<'_>]) -> String {
    let mut counts: BTreeMap<PrState, usize> = BTreeMap::new();
    for entry in entries {
        *counts.entry(entry.state).or_default() += 1;
    }
    let counted = counts.iter().map(|(state, count)| match entries.len() {
        1 => state.named().label.to_owned(),
        _ => format!("{count} {}", state.named().label.to_lowercase()),
    });
    counted.collect::<Vec<_>>().join(", ")
}
