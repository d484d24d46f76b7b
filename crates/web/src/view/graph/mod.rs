//! The graph of a queue: which pull requests are tested on top of which, in lanes and batches.

mod drawing;
mod layout;

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{EntryView, PrState, QueueView, TestRun};
use signalbox_wording::Named;

use super::QueueAddress;
use crate::model::{Block, Cell, Page, Section, Table};
use layout::{Node, lanes};

/// The most pull requests that are drawn.
const MOST: usize = 500;
/// The most boxes that are drawn large, unless the visitor wants others.
const MOST_LARGE: usize = 48;
/// The most test runs that are drawn before lanes are folded, unless the visitor wants them unfolded.
const MOST_UNFOLDED: usize = 150;
/// The most waiting pull requests that are drawn one by one.
const MOST_WAITING: usize = 12;
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

/// A box, or the boxes of a batch: pull requests in one test run, or in a folded lane.
struct Unit<'a> {
    entries: Vec<&'a EntryView<'a>>,
    /// The run; the first one of a folded lane.
    run: &'a TestRun,
    /// How many runs it stands for.
    runs: usize,
    node: Node,
}

/// What is drawn, and how.
struct Drawn<'a> {
    units: Vec<Unit<'a>>,
    waiting: Vec<&'a EntryView<'a>>,
    is_large: bool,
    is_folded: bool,
    /// The lanes of several runs, the longest first, each as its first pull request and the number of runs.
    lanes: Vec<(PrNumber, usize)>,
    /// How many pull requests there are.
    total: usize,
}

impl<'a> Drawn<'a> {
    fn of(view: &'a QueueView<'a>, wanted: &Wanted) -> Self {
        let entries: Vec<&'a EntryView<'a>> =
            view.entries.iter().filter(|it| it.position.is_some() || it.run.is_some()).collect();
        let total = entries.len();
        let (tested, waiting): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|it| it.run.is_some());
        let mut units = units(&tested);
        let mut lanes = Vec::new();
        if let Some(pr) = wanted.lane {
            units = only_lane(units, pr);
        } else {
            lanes = long_lanes(&units);
        }
        let is_folded = !lanes.is_empty()
            && match wanted.lanes.as_str() {
                "folded" => true,
                "unfolded" => false,
                _ => units.len() > MOST_UNFOLDED,
            };
        if is_folded {
            units = folded(units);
        }
        let boxes: usize = units.iter().map(|it| it.entries.len()).sum();
        let is_large = match wanted.size.as_str() {
            "large" => true,
            "small" => false,
            _ => !is_folded && boxes <= MOST_LARGE,
        };
        for unit in &mut units {
            unit.node.boxes = if is_large && unit.runs == 1 { unit.entries.len() } else { 1 };
        }
        let waiting = if wanted.lane.is_some() { Vec::new() } else { waiting };
        Self { units, waiting, is_large, is_folded, lanes, total }
    }

    /// The pull requests that are drawn in test runs, and those that are drawn one by one while they wait.
    fn entries(&self) -> impl Iterator<Item = &'a EntryView<'a>> {
        let waiting = if self.has_single_waiting() { self.waiting.as_slice() } else { &[] };
        self.units.iter().flat_map(|it| it.entries.iter()).chain(waiting).copied()
    }

    fn has_single_waiting(&self) -> bool {
        self.is_large && self.waiting.len() <= MOST_WAITING
    }
}

/// The test runs of pull requests, which are in the order of the queue.
fn units<'a>(tested: &[&'a EntryView<'a>]) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    let mut by_run: BTreeMap<u64, usize> = BTreeMap::new();
    let mut by_pr: BTreeMap<PrNumber, usize> = BTreeMap::new();
    for entry in tested.iter().take(MOST) {
        let Some(run) = entry.run else { continue };
        let at = *by_run.entry(run.number).or_insert(units.len());
        by_pr.insert(entry.entry.pr, at);
        match units.get_mut(at) {
            Some(unit) => unit.entries.push(entry),
            None => units.push(Unit { entries: vec![entry], run, runs: 1, node: Node::default() }),
        }
    }
    for (at, unit) in units.iter_mut().enumerate() {
        let ahead = unit.run.ahead.iter().filter_map(|(_, pr)| by_pr.get(pr).copied());
        let ahead: BTreeSet<usize> = ahead.filter(|ahead| *ahead < at).collect();
        unit.node.ahead = ahead.into_iter().collect();
    }
    units
}

fn lanes_of(units: &[Unit<'_>]) -> Vec<usize> {
    let nodes: Vec<Node> = units.iter().map(|it| it.node.clone()).collect();
    lanes(&nodes)
}

/// The lanes of several runs, the longest first; none if there is only one.
fn long_lanes(units: &[Unit<'_>]) -> Vec<(PrNumber, usize)> {
    let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
    for lane in lanes_of(units) {
        *runs.entry(lane).or_default() += 1;
    }
    let first = |at: usize| Some(units.get(at)?.entries.first()?.entry.pr);
    let long = runs.into_iter().filter(|(_, runs)| *runs > 1);
    let mut long: Vec<(PrNumber, usize)> =
        long.filter_map(|(at, runs)| Some((first(at)?, runs))).collect();
    long.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    if long.len() < 2 { Vec::new() } else { long }
}

/// The units of a pull request's lane.
fn only_lane(units: Vec<Unit<'_>>, pr: PrNumber) -> Vec<Unit<'_>> {
    let lanes = lanes_of(&units);
    let own = units.iter().position(|unit| unit.entries.iter().any(|it| it.entry.pr == pr));
    let own = own.and_then(|at| lanes.get(at)).copied();
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let mut kept = Vec::new();
    for (at, mut unit) in units.into_iter().enumerate() {
        if own.is_some() && lanes.get(at).copied() == own {
            places.insert(at, kept.len());
            unit.node.ahead =
                unit.node.ahead.iter().filter_map(|it| places.get(it).copied()).collect();
            kept.push(unit);
        }
    }
    kept
}

/// One unit for each lane.
fn folded(units: Vec<Unit<'_>>) -> Vec<Unit<'_>> {
    let lanes = lanes_of(&units);
    let mut folded: BTreeMap<usize, Unit<'_>> = BTreeMap::new();
    for (unit, lane) in units.into_iter().zip(lanes) {
        match folded.get_mut(&lane) {
            Some(first) => {
                first.runs += 1;
                first.entries.extend(unit.entries);
            }
            None => {
                folded.insert(lane, Unit { node: Node::default(), ..unit });
            }
        }
    }
    folded.into_values().collect()
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
    } else {
        for (pr, runs) in drawn.lanes.iter().take(LINKED_LANES) {
            ways.push(way(
                &format!("Lane of #{pr} ({runs} test runs)"),
                false,
                format!("&lane={pr}"),
            ));
        }
    }
    ways
}

/// What the picture omits, or abbreviates.
fn notes(drawn: &Drawn<'_>, wanted: &Wanted) -> Vec<String> {
    let mut notes = Vec::new();
    if drawn.total > MOST {
        notes.push(format!(
            "The graph shows at most {MOST} of {} pull requests; the list has all of them.",
            drawn.total
        ));
    }
    if !drawn.is_large && drawn.units.iter().any(|it| it.entries.len() > 1) {
        let what = if drawn.is_folded { "a batch or a folded lane" } else { "a batch" };
        notes.push(format!("#7 +3 is {what}: #7 and 3 other pull requests."));
    }
    if let Some(pr) = wanted.lane {
        notes.push(if drawn.units.is_empty() {
            format!("#{pr} is not in a test run.")
        } else {
            format!("Only the lane of #{pr} is shown.")
        });
    }
    notes
}

/// The page.
pub(crate) fn page(place: &QueueAddress, view: &QueueView<'_>, wanted: &Wanted) -> Page {
    let drawn = Drawn::of(view, wanted);
    let mut table = Table::new(
        "graph-table",
        "Which pull requests are tested on top of which",
        &["#Position", "Pull request", "State", "Tested together", "On top of"],
    )
    .empty("The queue is empty.");
    for entry in drawn.entries() {
        let list = |prs: Vec<PrNumber>| {
            let named: Vec<String> = prs.iter().take(20).map(|pr| format!("#{pr}")).collect();
            if named.is_empty() { "–".to_owned() } else { named.join(", ") }
        };
        let run = entry.run;
        let together = run.map(|it| it.group.iter().map(|it| it.pr).collect()).unwrap_or_default();
        let ahead = run.map(|it| it.ahead.iter().map(|(_, pr)| *pr).collect()).unwrap_or_default();
        let position = entry.position.map_or_else(|| "–".to_owned(), |it| it.to_string());
        table.push(
            entry.entry.pr,
            vec![
                Cell::number(position),
                super::queue::titled(entry.entry, place),
                Cell::named(&entry.state),
                Cell::text(list(together)),
                Cell::text(list(ahead)),
            ],
        );
    }
    let mut section = Section::plain("picture");
    for note in notes(&drawn, wanted) {
        section = section.with(Block::Text(note));
    }
    let is_empty = drawn.units.is_empty() && drawn.waiting.is_empty();
    if !drawn.units.is_empty() || wanted.lane.is_some() {
        section = section.with(Block::Links(ways(place, &drawn, wanted)));
    }
    section = if is_empty {
        section.with(Block::Table(table))
    } else {
        section.with(Block::Chart(Box::new(drawing::chart(&drawn, place)), table))
    };
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
