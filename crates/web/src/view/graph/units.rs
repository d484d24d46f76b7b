//! What the graph draws: test runs, or lanes of them.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{EntryView, QueueView, TestRun};

use super::Wanted;
use super::layout::{Node, lanes};

/// The most pull requests, or folded lanes, that are drawn.
pub(super) const MOST: usize = 500;
/// The most boxes that are drawn large, unless the visitor wants others.
const MOST_LARGE: usize = 48;
/// The most test runs that are drawn before lanes are folded, unless the visitor wants them unfolded.
const MOST_UNFOLDED: usize = 150;
/// The most waiting pull requests that are drawn one by one.
pub(super) const MOST_WAITING: usize = 12;

/// Pull requests that are drawn together: in one test run, or in a folded lane.
pub(super) struct Unit<'a> {
    /// In the order of the queue; at least one.
    pub(super) entries: Vec<&'a EntryView<'a>>,
    /// The run; `None` for a folded lane, and for a pull request that passed by the run of a later one.
    pub(super) run: Option<&'a TestRun>,
    /// How many runs it stands for.
    pub(super) runs: usize,
    pub(super) node: Node,
}

impl Unit<'_> {
    pub(super) const fn is_lane(&self) -> bool {
        self.runs > 1
    }

    /// How many rows of the table it has.
    fn rows(&self) -> usize {
        if self.is_lane() { 1 } else { self.entries.len() }
    }
}

/// A lane of several runs.
pub(super) struct Lane {
    pub(super) first: PrNumber,
    /// Its last pull request, which is in it as long as any.
    pub(super) last: PrNumber,
    pub(super) runs: usize,
}

/// What is drawn, and how.
pub(super) struct Drawn<'a> {
    pub(super) units: Vec<Unit<'a>>,
    pub(super) waiting: Vec<&'a EntryView<'a>>,
    pub(super) is_large: bool,
    pub(super) is_folded: bool,
    /// The lanes of several runs, the longest first; none if there is only one, or if only one is drawn.
    pub(super) lanes: Vec<Lane>,
    /// How many pull requests are in test runs that are not drawn.
    pub(super) omitted: usize,
}

impl<'a> Drawn<'a> {
    pub(super) fn of(view: &'a QueueView<'a>, wanted: &Wanted) -> Self {
        let entries = view.entries.iter();
        let entries = entries.filter(|it| it.position.is_some() || it.run.is_some());
        let (tested, mut waiting): (Vec<_>, Vec<_>) = entries.partition(|it| it.run.is_some());
        let mut units = units(&tested);
        let mut lanes = Vec::new();
        if let Some(pr) = wanted.lane {
            units = only_lane(units, pr);
            waiting = Vec::new();
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
        let omitted = truncate(&mut units);
        let boxes: usize = units.iter().map(Unit::rows).sum();
        let is_large = match wanted.size.as_str() {
            "large" => true,
            "small" => false,
            _ => !is_folded && boxes <= MOST_LARGE,
        };
        for unit in &mut units {
            unit.node.boxes = if is_large { unit.rows() } else { 1 };
        }
        Self { units, waiting, is_large, is_folded, lanes, omitted }
    }

    /// Whether the waiting pull requests are drawn one by one.
    pub(super) fn has_single_waiting(&self) -> bool {
        self.is_large && self.waiting.len() <= MOST_WAITING
    }
}

/// The test runs of pull requests, which are in the order of the queue.
fn units<'a>(tested: &[&'a EntryView<'a>]) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    let mut by_run: BTreeMap<u64, usize> = BTreeMap::new();
    let mut by_pr: BTreeMap<PrNumber, usize> = BTreeMap::new();
    for entry in tested {
        let is_member = |run: &&TestRun| run.group.iter().any(|it| it.entry == entry.entry.id);
        let run = entry.run.filter(is_member);
        let known = run.and_then(|run| by_run.get(&run.number).copied());
        let at = known.unwrap_or(units.len());
        by_run.extend(run.map(|run| (run.number, at)));
        by_pr.insert(entry.entry.pr, at);
        match units.get_mut(at) {
            Some(unit) => unit.entries.push(entry),
            None => units.push(Unit { entries: vec![entry], run, runs: 1, node: Node::default() }),
        }
    }
    for (at, unit) in units.iter_mut().enumerate() {
        let ahead = unit.run.into_iter().flat_map(|run| run.ahead.iter());
        let ahead = ahead.filter_map(|(_, pr)| by_pr.get(pr).copied());
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
fn long_lanes(units: &[Unit<'_>]) -> Vec<Lane> {
    let mut members: BTreeMap<usize, Vec<&Unit<'_>>> = BTreeMap::new();
    for (unit, lane) in units.iter().zip(lanes_of(units)) {
        members.entry(lane).or_default().push(unit);
    }
    let lane = |units: Vec<&Unit<'_>>| {
        let first = units.first()?.entries.first()?.entry.pr;
        let last = units.last()?.entries.last()?.entry.pr;
        Some(Lane { first, last, runs: units.len() })
    };
    let long = members.into_values().filter(|it| it.len() > 1);
    let mut long: Vec<Lane> = long.filter_map(lane).collect();
    long.sort_by_key(|it| std::cmp::Reverse(it.runs));
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
            let ahead = unit.node.ahead.iter();
            unit.node.ahead = ahead.filter_map(|it| places.get(it).copied()).collect();
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
        if let Some(first) = folded.get_mut(&lane) {
            first.run = None;
            first.runs += 1;
            first.entries.extend(unit.entries);
        } else {
            folded.insert(lane, Unit { node: Node::default(), ..unit });
        }
    }
    folded.into_values().collect()
}

/// Keeps the first units, and returns how many pull requests are in the others.
fn truncate(units: &mut Vec<Unit<'_>>) -> usize {
    let mut rows = 0;
    let has_room = |unit: &Unit<'_>| {
        rows += unit.rows();
        rows <= MOST
    };
    let kept = units.iter().map(has_room).take_while(|has_room| *has_room).count();
    units.drain(kept..).map(|it| it.entries.len()).sum()
}
