//! Indexes of the line: which entries keep later ones from being built, and which share a target with
//! another one.
//!
//! Like [`Waiting`](super::waiting::Waiting) this is derived from the queue and no part of its
//! state.

use std::cmp::Reverse;
use std::ops::Bound;

use super::order::OrderKey;
use super::sorted::SortedSet;
use super::started::{Rank, exchange};
use super::{Entry, EntryState, LinePosition, Mode, Queue, Settings, Targets, TestRun};

/// The most targets of an entry that are indexed. An entry with more is compared with every other one.
const MOST_TARGETS: usize = 16;
/// The most targets of a lane that are looked up. For a batch with more the whole line is searched.
const MOST_OF_LANE: usize = 64;

/// The places of entries by the hashes of their targets; `None` for entries with all targets, or with
/// more than are indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places(SortedSet<(Option<u64>, OrderKey)>);

/// The hashes of an entry's targets; `None` for all targets, or for more than are indexed.
fn hashes(entry: &Entry) -> Option<&[u64]> {
    match entry.applied_targets().map(|applied| &applied.targets) {
        Some(Targets::Only(targets)) if targets.len() <= MOST_TARGETS => Some(targets.hashes()),
        None | Some(Targets::All | Targets::Only(_)) => None,
    }
}

/// Where an entry is placed.
fn marks(entry: &Entry) -> impl Iterator<Item = (Option<u64>, OrderKey)> {
    let key = OrderKey::of(entry);
    let hashes = hashes(entry);
    let wide = hashes.is_none().then_some(None);
    let narrow = hashes.unwrap_or_default().iter().copied().map(Some);
    wide.into_iter().chain(narrow).map(move |of| (of, key))
}

impl Places {
    /// Replaces the old version of an entry by the new one.
    fn replace(&mut self, old: Option<&Entry>, new: Option<&Entry>) {
        let in_line = |entry: &&Entry| entry.place != LinePosition::Outside;
        let (old, new) = (old.filter(in_line), new.filter(in_line));
        if let (Some(old), Some(new)) = (old, new)
            && OrderKey::of(old) == OrderKey::of(new)
            && hashes(old) == hashes(new)
        {
            return;
        }
        for mark in old.into_iter().flat_map(marks) {
            self.0.remove(&mark);
        }
        for mark in new.into_iter().flat_map(marks) {
            self.0.insert(mark);
        }
    }

    /// The places behind this one of entries that may have one of these targets, in line order.
    fn behind(&self, targets: &[u64], key: OrderKey) -> impl Iterator<Item = OrderKey> {
        let last = OrderKey::first_outside();
        let of_target = move |of| {
            let places = (Bound::Excluded((of, key)), Bound::Excluded((of, last)));
            self.0.range(places).map(|(_, key)| *key)
        };
        merged(kinds(targets).map(of_target))
    }

    /// The places ahead of this one of entries that may have one of these targets, nearest first.
    fn before(&self, targets: &[u64], key: OrderKey) -> impl Iterator<Item = OrderKey> {
        let of_target = move |of| {
            let places = self.0.range((of, OrderKey::FIRST)..(of, key)).rev();
            places.map(|(_, key)| Reverse(*key))
        };
        merged(kinds(targets).map(of_target)).map(|Reverse(key)| key)
    }
}

/// The entries that are not indexed by target, and those with one of these targets.
fn kinds(targets: &[u64]) -> impl Iterator<Item = Option<u64>> {
    std::iter::once(None).chain(targets.iter().copied().map(Some))
}

/// Merges sorted iterators. What several of them return comes once.
fn merged<T: Ord + Copy, I: Iterator<Item = T>>(
    sources: impl Iterator<Item = I>,
) -> impl Iterator<Item = T> {
    let mut sources: Vec<_> = sources.map(Iterator::peekable).collect();
    std::iter::from_fn(move || {
        let next = sources.iter_mut().filter_map(|source| source.peek().copied()).min()?;
        for source in &mut sources {
            source.next_if_eq(&next);
        }
        Some(next)
    })
}

/// The indexes of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaneIndex {
    /// Entries in the line that some later entry cannot be built on.
    obstacles: SortedSet<OrderKey>,
    /// Whether entries are also indexed by target: in a queue with batches in PARALLEL mode.
    by_target: bool,
    line: Places,
    obstacles_by_target: Places,
}

impl LaneIndex {
    /// The index of an empty queue with these settings.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            obstacles: SortedSet::default(),
            by_target: settings.batch && settings.mode == Mode::Parallel,
            line: Places::default(),
            obstacles_by_target: Places::default(),
        }
    }

    /// Replaces the old version of an entry by the new one, which has this run.
    pub(super) fn replace(
        &mut self,
        old: Option<&Entry>,
        new: Option<&Entry>,
        run: Option<&TestRun>,
    ) {
        let was = old.filter(|old| self.obstacles.contains(&OrderKey::of(old)));
        let is = new.filter(|new| is_obstacle(new, run));
        exchange(&mut self.obstacles, was.map(OrderKey::of), is.map(OrderKey::of));
        if self.by_target {
            self.line.replace(old, new);
            self.obstacles_by_target.replace(was, is);
        }
    }
}

/// Whether some later entry cannot be built on this one, which has this run: it is in the line,
/// candidates contain it, and it has no candidate, may still fail for reasons of its own, or is a
/// part of a split batch.
pub(super) fn is_obstacle(entry: &Entry, run: Option<&TestRun>) -> bool {
    let built = run.is_some_and(|run| run.candidate.is_some());
    match &entry.state {
        EntryState::NotReady | EntryState::Ended(_) => false,
        EntryState::Pending { held_by, .. } => held_by.is_none(),
        EntryState::Testing { .. } => !built || run.is_some_and(|run| run.bisection),
        EntryState::TestsPassed { .. } => !built,
        EntryState::PendingFailure { .. } => true,
    }
}

/// The targets of an entry or a group. Only an entry with one of them, or with more than are indexed, can
/// share a target with it. `None` if the whole line has to be searched.
pub(super) struct Lane(Option<Vec<u64>>);

impl Lane {
    pub(super) fn of(queue: &Queue, entry: &Entry) -> Self {
        let is_indexed = queue.lanes.by_target && queue.mode() == Mode::Parallel;
        Self(hashes(entry).filter(|_| is_indexed).map(<[u64]>::to_vec))
    }

    /// Adds the targets of another entry.
    pub(super) fn join(&mut self, entry: &Entry) {
        let both = self.0.take().zip(hashes(entry)).map(|(mut targets, others)| {
            targets.extend(others);
            targets.sort_unstable();
            targets.dedup();
            targets
        });
        self.0 = both.filter(|targets| targets.len() <= MOST_OF_LANE);
    }
}

impl Queue {
    /// Renews the indexes after a change of settings.
    pub(super) fn index_lanes(&mut self) {
        let mut lanes = LaneIndex::new(&self.header.settings);
        if lanes.by_target == self.lanes.by_target {
            return;
        }
        for entry in self.entries_in_order() {
            let run = entry.state.run().and_then(|run| self.run(run));
            lanes.replace(None, Some(entry), run);
        }
        self.lanes = lanes;
    }

    /// Forgets the indexes by target, so that the line is searched.
    #[cfg(test)]
    pub(super) fn forget_lanes(&mut self) {
        self.lanes.by_target = false;
    }

    /// The entries in the line behind this key that may be of a lane, nearest first.
    pub(super) fn lane_behind(&self, lane: &Lane, key: OrderKey) -> impl Iterator<Item = &Entry> {
        let of_lane = lane.0.as_ref().map(|targets| self.lanes.line.behind(targets, key));
        let whole_line = of_lane.is_none().then(|| self.behind(key));
        let of_lane = of_lane.into_iter().flatten().filter_map(|key| self.entry_of(key.pr()));
        of_lane.chain(whole_line.into_iter().flatten())
    }

    /// The entries in the line ahead of this key that candidates contain and that may be of a lane,
    /// nearest first.
    pub(super) fn lane_before(&self, lane: &Lane, key: OrderKey) -> impl Iterator<Item = &Entry> {
        let of_lane = lane.0.as_ref().map(|targets| self.lanes.line.before(targets, key));
        let whole_line = of_lane.is_none().then(|| self.before(key));
        let of_lane = of_lane.into_iter().flatten().filter_map(|key| self.entry_of(key.pr()));
        of_lane.filter(|entry| !entry.is_held()).chain(whole_line.into_iter().flatten())
    }

    /// The ranks ahead of this key of entries that may be of a lane, nearest first; `None` if the line has
    /// to be searched for them.
    pub(super) fn lane_ranks(
        &self,
        lane: &Lane,
        key: OrderKey,
    ) -> Option<impl Iterator<Item = Rank>> {
        let places = self.lanes.line.before(lane.0.as_ref()?, key);
        Some(places.filter_map(|key| Rank::of_key(&key)))
    }

    /// The entries ahead of this key that some later entry cannot be built on and that may be of a
    /// lane, nearest first.
    pub(super) fn lane_obstacles(
        &self,
        lane: &Lane,
        key: OrderKey,
    ) -> impl Iterator<Item = &Entry> {
        let places = &self.lanes.obstacles_by_target;
        let of_lane = lane.0.as_ref().map(|targets| places.before(targets, key));
        let all = of_lane.is_none().then(|| self.lanes.obstacles.range(..key).rev().copied());
        let keys = of_lane.into_iter().flatten().chain(all.into_iter().flatten());
        keys.filter_map(|key| self.entry_of(key.pr()))
    }
}
