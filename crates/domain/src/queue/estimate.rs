//! Estimates of the time until a pull request is merged, from the entries ahead and the durations
//! of earlier runs, assuming that every run passes and that groups which would probably fail in the
//! line are pretested. An estimate is always shown with its basis.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::ids::{PrNumber, RunId};
use crate::time::{Span, Timestamp};

use super::freeze::{first_partial, prolonged};
use super::lanes::{in_line, meet};
use super::view::freeze;
use super::{
    Entry, EntryState, EntryView, FreezeScope, LinePosition, Move, PassReason, PolicyView, Queue,
    QueueState, TestRun, WaitReason, bisect, pretest, view_entry,
};

/// After how many freezes that interrupt its test a pull request has no estimate.
const INTERRUPTED: usize = 16;

/// Longer than every estimate.
const ENDLESS: Span = Span::from_micros(i64::MAX);

/// The percentile of earlier durations that counts as the usual one: the median.
pub const PERCENTILE: u8 = 50;

/// An estimate and its basis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The time from now until the merge; `None` when it cannot be estimated.
    pub time: Option<Span>,
    /// The number of earlier runs that it is based on.
    pub runs: u32,
    /// The pull requests ahead that it waits for, in line order.
    pub ahead: Vec<PrNumber>,
    /// The data it is computed from, or why there is no estimate.
    pub basis: Basis,
}

/// The basis of an estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Durations of earlier runs.
    Runs {
        /// The median duration.
        usual: Span,
        /// A run that takes longer than all earlier ones, if there is one.
        overdue: Option<Overdue>,
    },
    /// No estimate: the pull request is not in the queue.
    NotInQueue,
    /// No estimate: the end of this wait is unknown.
    Waits(Option<WaitReason>),
    /// No estimate: the queue is paused.
    Paused,
    /// No estimate: no run of this queue has passed yet.
    NoRuns,
}

/// A run that takes longer than all earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The pull request that the run tests; `None` for the entry's own run.
    pub pr: Option<PrNumber>,
    /// The time since its start.
    pub running: Span,
}

/// The durations of runs whose own checks passed, from moves from TESTING to TESTS_PASSED. Each run
/// counts once; runs of bisections do not count.
pub fn durations(passes: &[Move]) -> Vec<Span> {
    let mut seen = BTreeSet::new();
    passes
        .iter()
        .filter(|it| !it.bisection && it.reason == PassReason::OwnRun.into())
        .filter(|it| it.run.is_none_or(|run| seen.insert(run)))
        .map(|it| it.after)
        .collect()
}

/// Estimates when a live entry will be merged. `history` holds durations of earlier runs, in any
/// order. For several entries of a queue, use [`Estimates`].
pub fn estimate(queue: &Queue, pr: PrNumber, history: &[Span], now: Timestamp) -> Estimate {
    let estimates = Estimates::new(queue, history, now);
    match view_entry(queue, pr) {
        Some(view) => estimates.of(&view),
        None => estimates.none(Vec::new(), Basis::NotInQueue),
    }
}

/// Estimates of the entries of one queue: the line is gathered once.
#[derive(Clone, Debug)]
pub struct Estimates<'a> {
    queue: &'a Queue,
    line: Vec<&'a Entry>,
    /// Durations of earlier runs, ascending.
    history: Vec<Span>,
    now: Timestamp,
}

impl<'a> Estimates<'a> {
    /// Estimates from this time on. `history` holds durations of earlier runs, in any order.
    pub fn new(queue: &'a Queue, history: &[Span], now: Timestamp) -> Self {
        let mut history = history.to_vec();
        history.sort_unstable();
        Self { queue, line: in_line(queue).collect(), history, now }
    }

    /// Estimates when a live entry of the queue will be merged.
    pub fn of(&self, view: &EntryView<'_>) -> Estimate {
        let Self { queue, history, now, .. } = self;
        let waits = || Basis::Waits(view.waits.clone());
        if view.entry.place == LinePosition::Outside {
            return self.none(Vec::new(), waits());
        }
        let ahead = self.waits_for(view.entry);
        if matches!(queue.header.state, QueueState::Paused { .. }) {
            return self.none(ahead, Basis::Paused);
        }
        let stuck = queue.header.host.unreachable_since.is_some()
            || queue.header.target.missing
            || bisect::is_suspected(view.entry);
        if stuck || matches!(view.entry.state, EntryState::PendingFailure { .. }) {
            return self.none(ahead, waits());
        }
        let Some(usual) = median(history) else {
            return self.none(ahead, Basis::NoRuns);
        };
        let time = Simulation::new(self, usual).merged_after(view.entry);
        let Some(time) = with_freezes(queue, view.entry, (time, usual), *now) else {
            let waits = freeze(queue).or_else(|| view.waits.clone());
            return self.none(ahead, Basis::Waits(waits));
        };
        let overdue = self.overdue(view.entry);
        Estimate { time: Some(time), ..self.none(ahead, Basis::Runs { usual, overdue }) }
    }

    fn none(&self, ahead: Vec<PrNumber>, basis: Basis) -> Estimate {
        let runs = u32::try_from(self.history.len()).unwrap_or(u32::MAX);
        Estimate { time: None, runs, ahead, basis }
    }

    /// The pull requests ahead that must merge or leave before this one.
    fn waits_for(&self, entry: &Entry) -> Vec<PrNumber> {
        let before = self.line.iter().take_while(|it| it.id != entry.id);
        before.filter(|it| meet(self.queue.mode(), it, entry)).map(|it| it.pr).collect()
    }

    /// The run of the entry, or of an entry that it waits for, that takes longer than all earlier ones.
    fn overdue(&self, entry: &Entry) -> Option<Overdue> {
        let Self { queue, line, history, now } = self;
        let longest = history.last().copied();
        let upto = line.iter().filter(|it| it.id == entry.id || meet(queue.mode(), it, entry));
        let mut seen = false;
        for other in upto {
            if seen {
                break;
            }
            seen = other.id == entry.id;
            let EntryState::Testing { run, .. } = &other.state else { continue };
            let run = queue.run(*run).filter(|run| run.status.is_running())?;
            let lasted = now.since(run.started_at);
            if longest.is_some_and(|longest| lasted > longest) {
                let pr = (other.id != entry.id).then_some(other.pr);
                return Some(Overdue { pr, running: lasted });
            }
        }
        None
    }
}

/// The time until the merge with the freezes until then; `None` if one of them has no known end. A freeze
/// with a scope ends the test, and a usual one follows it.
fn with_freezes(
    queue: &Queue,
    entry: &Entry,
    (time, usual): (Span, Span),
    now: Timestamp,
) -> Option<Span> {
    let settings = &queue.header.settings;
    if entry.priority.is_urgent() || settings.freezes.is_empty() {
        return Some(time);
    }
    let is_delayed =
        !settings.test_while_frozen && matches!(entry.state, EntryState::Pending { .. });
    let applies = |scope: &FreezeScope| scope.covers(entry);
    let (mut start, mut time) = (now, time);
    for _ in 0..INTERRUPTED {
        let (before, rest) = if is_delayed { (Span::ZERO, time) } else { (time, Span::ZERO) };
        let tested = start.plus(before);
        let merged = tested.plus(prolonged(&settings.freezes, tested, rest)?);
        let Some(freeze) = first_partial(&settings.freezes, applies, start, merged) else {
            return Some(merged.since(now));
        };
        (start, time) = (freeze.until?, usual);
    }
    None
}

fn median(sorted: &[Span]) -> Option<Span> {
    sorted.get(sorted.len() / 2).or(sorted.last()).copied()
}

fn sum(one: Span, other: Span) -> Span {
    Span::from_micros(one.micros().saturating_add(other.micros()))
}

/// A group that waiting entries join.
#[derive(Default)]
struct Group {
    /// How many more join it.
    room: u32,
    /// When its run ends.
    done: Span,
    /// Whether a pretest comes before that run.
    beside: bool,
}

/// The waiting entries behind the first one of a group of this size that join it.
fn mates<'a>(behind: &[&'a Entry], size: u32) -> impl Iterator<Item = &'a Entry> {
    let waits = |it: &&Entry| {
        matches!(it.state, EntryState::Pending { .. }) && !it.no_batch && it.aside().is_none()
    };
    let count = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(1);
    behind.iter().copied().filter(waits).take(count)
}

/// Simulates the line: a free slot takes the next group, every run takes the usual time, and every
/// run passes.
struct Simulation<'a> {
    queue: &'a Queue,
    line: &'a [&'a Entry],
    usual: Span,
    /// The remaining time of each active run.
    running: BTreeMap<RunId, Span>,
    /// When each slot becomes free, from now.
    slots: BinaryHeap<Reverse<Span>>,
    /// What the policy sees, if the queue pretests.
    policy: Option<PolicyView<'a>>,
}

impl<'a> Simulation<'a> {
    fn new(estimates: &'a Estimates<'a>, usual: Span) -> Self {
        let (now, Estimates { queue, line, history, .. }) = (estimates.now, estimates);
        let rest = |run: &TestRun| {
            let elapsed = now.since(run.started_at);
            // The median of the earlier runs that took longer than this one has so far.
            let from = history.partition_point(|it| *it <= elapsed);
            let longer = history.get(from..).and_then(median);
            // A run that takes longer than all earlier ones is expected to take as long again, at
            // most until its deadline.
            let again = || run.deadline.map_or(elapsed, |due| due.since(now).min(elapsed));
            longer.map_or_else(again, |it| Span::from_micros(it.micros() - elapsed.micros()))
        };
        let running: BTreeMap<RunId, Span> = queue
            .runs()
            .filter(|run| run.status.is_running())
            .map(|run| (run.id, rest(run)))
            .collect();
        let of_line = queue.runs().filter(|run| !run.bisection && run.status.is_running());
        // After a pretest, the second run takes a slot before what waits.
        let is_pretest = |run: &TestRun| {
            let first = run.group.first().and_then(|member| queue.entry(member.entry));
            first.is_some_and(Entry::is_pretested)
        };
        let taken = |run: &TestRun| {
            let rest = running.get(&run.id).copied()?;
            Some(Reverse(if is_pretest(run) { sum(rest, usual) } else { rest }))
        };
        let mut slots: BinaryHeap<_> = of_line.filter_map(taken).collect();
        let limit = usize::try_from(queue.slots_of_line().1).unwrap_or(usize::MAX);
        while slots.len() < limit.max(1) {
            slots.push(Reverse(Span::ZERO));
        }
        let policy = pretest::is_in_force(queue).then(|| PolicyView::of(queue));
        Self { queue, line, usual, running, slots, policy }
    }

    /// The time until this entry, and every entry that it waits for, has been tested.
    fn merged_after(mut self, entry: &Entry) -> Span {
        if entry.is_pretested() {
            // After the pretest it is tested again in the line.
            let run = entry.state.run();
            let rest = run.and_then(|run| self.running.get(&run).copied()).unwrap_or(self.usual);
            return sum(rest, self.usual);
        }
        let settings = &self.queue.header.settings;
        let (mut merged, mut group) = (Span::ZERO, Group::default());
        // What has not passed, and when its run ends.
        let mut unfinished: Vec<(Span, &Entry)> = Vec::new();
        for (at, other) in self.line.iter().copied().enumerate() {
            if other.aside().is_some() {
                continue;
            }
            let done = match &other.state {
                EntryState::Testing { run, .. } => {
                    self.running.get(run).copied().unwrap_or(self.usual)
                }
                EntryState::Pending { .. } => {
                    let is_alone = other.no_batch || !settings.batch;
                    let size = || if is_alone { 1 } else { self.queue.batch_size(other) };
                    if is_alone || group.room == 0 {
                        let size = size();
                        let start = self.slots.peek().map_or(Span::ZERO, |Reverse(free)| *free);
                        unfinished.retain(|(done, _)| *done > start);
                        let mates = mates(self.line.get(at + 1..).unwrap_or_default(), size);
                        let others = unfinished.iter().map(|(_, it)| *it).chain(mates);
                        let beside = self.is_pretested(other, others);
                        let runs = if beside { 2 } else { 1 };
                        group = Group { room: size, done: self.take_slot(runs), beside };
                    }
                    group.room -= 1;
                    if group.beside && other.id != entry.id {
                        continue;
                    }
                    group.done
                }
                EntryState::NotReady
                | EntryState::TestsPassed { .. }
                | EntryState::PendingFailure { .. }
                | EntryState::Ended(_) => Span::ZERO,
            };
            if other.id == entry.id || meet(self.queue.mode(), other, entry) {
                merged = merged.max(done);
            }
            if other.id == entry.id {
                break;
            }
            if matches!(other.state, EntryState::PendingFailure { .. }) {
                unfinished.push((ENDLESS, other));
            } else if done > Span::ZERO && !other.has_passed() {
                unfinished.push((done, other));
            }
        }
        merged
    }

    /// Whether the group of this first entry would probably be tested beside the line first, where
    /// pull requests behind it do not wait for it. The others are what its run would contain besides it.
    fn is_pretested<'b>(&self, first: &'b Entry, others: impl Iterator<Item = &'b Entry>) -> bool {
        self.policy.as_ref().is_some_and(|view| {
            let met = others.filter(|it| meet(self.queue.mode(), it, first));
            pretest::expected(self.queue, view, first, met)
        })
    }

    /// Starts so many runs, one after the other, in the slot that becomes free first; returns when the
    /// last one ends.
    fn take_slot(&mut self, runs: u32) -> Span {
        let free = self.slots.pop().map_or(Span::ZERO, |Reverse(free)| free);
        let done = (0..runs).fold(free, |done, _| sum(done, self.usual));
        self.slots.push(Reverse(done));
        done
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
