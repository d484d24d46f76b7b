//! How long it will take until a pull request is merged, if all goes well: from what is ahead of it
//! and how long earlier runs took. Always shown with what it is based on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::ids::{PrNumber, RunId};
use crate::time::{Span, Timestamp};

use super::lanes::{in_line, meet};
use super::{
    Entry, EntryState, LinePosition, Move, PassReason, Queue, QueueState, TestRun, WaitReason,
    view_entry,
};

/// Which of the earlier durations counts as the usual one: the median.
pub const PERCENTILE: u8 = 50;

/// An estimate and what it is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// How long from now; `None` when there is no telling.
    pub time: Option<Span>,
    /// How many earlier runs it is based on.
    pub runs: u32,
    /// Those ahead in the line that it waits for, in line order.
    pub ahead: Vec<PrNumber>,
    /// What it is made from, or why there is none.
    pub basis: Basis,
}

/// What an estimate is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// How long earlier runs took.
    Runs {
        /// The usual duration: the median.
        usual: Span,
        /// A run that takes longer than any before, if there is one.
        overdue: Option<Overdue>,
    },
    /// It is not in the queue.
    NotInQueue,
    /// It cannot be foreseen when this wait ends.
    Waits(Option<WaitReason>),
    /// The queue is paused.
    Paused,
    /// No run has passed by itself in this queue.
    NoRuns,
}

/// A run that takes longer than any before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Whose run it is; `None` for the run of the entry itself.
    pub pr: Option<PrNumber>,
    /// How long it has run.
    pub running: Span,
}

/// How long the runs took that passed by themselves, from moves from TESTING to TESTS_PASSED.
/// Each run counts once, and those of bisections do not.
pub fn durations(passes: &[Move]) -> Vec<Span> {
    let mut seen = BTreeSet::new();
    passes
        .iter()
        .filter(|it| !it.bisection && it.reason == PassReason::OwnRun.into())
        .filter(|it| it.run.is_none_or(|run| seen.insert(run)))
        .map(|it| it.after)
        .collect()
}

/// Estimates when a live entry is merged. `history` are durations of earlier runs, in any order.
pub fn estimate(queue: &Queue, pr: PrNumber, history: &[Span], now: Timestamp) -> Estimate {
    let mut history = history.to_vec();
    history.sort_unstable();
    let runs = u32::try_from(history.len()).unwrap_or(u32::MAX);
    let none = |ahead, basis| Estimate { time: None, runs, ahead, basis };
    let Some(view) = view_entry(queue, pr) else {
        return none(Vec::new(), Basis::NotInQueue);
    };
    if view.entry.place == LinePosition::Outside {
        return none(Vec::new(), Basis::Waits(view.waits));
    }
    let ahead = waits_for(queue, view.entry);
    if matches!(queue.header.state, QueueState::Paused { .. }) {
        return none(ahead, Basis::Paused);
    }
    let stuck = queue.header.host.unreachable_since.is_some() || queue.header.target.missing;
    if stuck || matches!(view.entry.state, EntryState::PendingFailure { .. }) {
        return none(ahead, Basis::Waits(view.waits));
    }
    let Some(usual) = median(&history) else {
        return none(ahead, Basis::NoRuns);
    };
    let time = Simulation::new(queue, &history, usual, now).merged_after(view.entry);
    let overdue = overdue(queue, view.entry, history.last().copied(), now);
    Estimate { time: Some(time), runs, ahead, basis: Basis::Runs { usual, overdue } }
}

/// Whose run takes longer than any before, of the entry and those that it waits for, and for how
/// long it has run.
fn overdue(queue: &Queue, entry: &Entry, longest: Option<Span>, now: Timestamp) -> Option<Overdue> {
    let upto = in_line(queue).filter(|it| it.id == entry.id || meet(queue.mode(), it, entry));
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

fn median(sorted: &[Span]) -> Option<Span> {
    sorted.get(sorted.len() / 2).or(sorted.last()).copied()
}

/// Those ahead that must be merged, or leave, before this one.
fn waits_for(queue: &Queue, entry: &Entry) -> Vec<PrNumber> {
    let before = in_line(queue).take_while(|it| it.id != entry.id);
    before.filter(|it| meet(queue.mode(), it, entry)).map(|it| it.pr).collect()
}

/// The line played forward: every slot takes the next group as soon as it is free, every run takes
/// the usual time, and nothing fails.
struct Simulation<'a> {
    queue: &'a Queue,
    usual: Span,
    /// How long each run that is under way will still take.
    running: BTreeMap<RunId, Span>,
    /// When each slot is free.
    slots: BinaryHeap<Reverse<Span>>,
}

impl<'a> Simulation<'a> {
    fn new(queue: &'a Queue, history: &[Span], usual: Span, now: Timestamp) -> Self {
        let rest = |run: &TestRun| {
            let elapsed = now.since(run.started_at);
            // Of the runs that took longer than this one has taken, the median.
            let from = history.partition_point(|it| *it <= elapsed);
            let longer = history.get(from..).and_then(median);
            // One that takes longer than any before is expected to take as long again, at most until
            // its deadline: the longer it runs, the less the others say about it.
            let again = || run.deadline.map_or(elapsed, |due| due.since(now).min(elapsed));
            longer.map_or_else(again, |it| Span::from_micros(it.micros() - elapsed.micros()))
        };
        let running: BTreeMap<RunId, Span> = queue
            .runs()
            .filter(|run| run.status.is_running())
            .map(|run| (run.id, rest(run)))
            .collect();
        let of_line = queue.runs().filter(|run| !run.bisection && run.status.is_running());
        let mut slots: BinaryHeap<_> =
            of_line.filter_map(|run| running.get(&run.id).copied()).map(Reverse).collect();
        let limit = usize::try_from(queue.header.settings.concurrency).unwrap_or(usize::MAX);
        while slots.len() < limit.max(1) {
            slots.push(Reverse(Span::ZERO));
        }
        Self { queue, usual, running, slots }
    }

    /// When this entry, and all that it waits for, have been tested.
    fn merged_after(mut self, entry: &Entry) -> Span {
        let settings = &self.queue.header.settings;
        let size = if settings.batch { settings.batching_min_size.max(1) } else { 1 };
        let (mut merged, mut group) = (Span::ZERO, (0, Span::ZERO));
        for other in in_line(self.queue) {
            let done = match &other.state {
                EntryState::Testing { run, .. } => {
                    self.running.get(run).copied().unwrap_or(self.usual)
                }
                EntryState::Pending { .. } => {
                    let alone = other.no_batch;
                    if alone || group.0 == 0 {
                        group = (size, self.take_slot());
                    }
                    group.0 = if alone { 0 } else { group.0 - 1 };
                    group.1
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
        }
        merged
    }

    /// Starts a run in the slot that is free first; returns when it is done.
    fn take_slot(&mut self) -> Span {
        let free = self.slots.pop().map_or(Span::ZERO, |Reverse(free)| free);
        let done = Span::from_micros(free.micros().saturating_add(self.usual.micros()));
        self.slots.push(Reverse(done));
        done
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
