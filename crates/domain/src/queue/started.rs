//! Index of the entries that have or had a run: their order, and what each is built on.
//!
//! Like [`Waiting`](super::waiting::Waiting) this is derived from the queue and no part of its
//! state.

use std::ops::Bound;
use std::sync::Arc;

use crate::ids::{RunId, Sha};

use super::order::OrderKey;
use super::sorted::{SortedMap, SortedSet};
use super::{Change, Entry, LinePosition, Queue, TestRun};

/// The position of an entry that keeps its place in the line. Ranks sort like the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    at_front: std::cmp::Reverse<bool>,
    number: u64,
}

impl Rank {
    /// The rank of a place; `None` for an entry that waits for its first run, which stands behind
    /// all that have a rank.
    pub(super) const fn of(place: LinePosition) -> Option<Self> {
        let (at_front, number) = match place {
            LinePosition::Front { number } => (true, number),
            LinePosition::Anchored { number } => (false, number),
            LinePosition::Waiting { .. } | LinePosition::Outside => return None,
        };
        Some(Self { at_front: std::cmp::Reverse(at_front), number })
    }

    /// The rank of the entry with this key; `None` for an entry without one.
    pub(super) fn of_key(key: &OrderKey) -> Option<Self> {
        key.place().map(|(at_front, number)| Self { at_front: std::cmp::Reverse(at_front), number })
    }
}

/// The union of two sorted lists.
pub(super) fn united(one: &[Rank], other: &[Rank]) -> Vec<Rank> {
    if one.is_empty() {
        return other.to_vec();
    }
    let mut all = Vec::with_capacity(one.len() + other.len());
    let mut rest = other.iter().peekable();
    for rank in one {
        while let Some(before) = rest.next_if(|next| *next < rank) {
            all.push(*before);
        }
        rest.next_if_eq(&rank);
        all.push(*rank);
    }
    all.extend(rest);
    all
}

/// The rank ahead of all others.
const FIRST: Rank = Rank { at_front: std::cmp::Reverse(true), number: 0 };

/// An entry with a rank.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) entry: Arc<Entry>,
    /// The commit of its run's candidate, once built.
    pub(super) candidate: Option<Sha>,
    /// Whether its run tests other entries too, or another entry.
    pub(super) shares_run: bool,
    /// Its changes, as sent to the host.
    pub(super) change: Arc<Change>,
}

/// The entries that have a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Started {
    places: SortedMap<Rank, Arc<Placed>>,
    /// The runs with the ranks of their entries.
    of_run: SortedSet<(RunId, Rank)>,
    /// The ranks of entries without a run.
    restarted: SortedSet<Rank>,
    /// For each entry with a run in PARALLEL mode, what it depended on when the run was started,
    /// directly or through others, in line order. Some of it may have left since.
    under: SortedMap<Rank, Arc<[Rank]>>,
    /// The number of entries that are bisected beside the line.
    pub(super) aside: usize,
}

/// What an entry contributes to the sets.
#[derive(PartialEq)]
struct Marks {
    rank: Option<Rank>,
    run: Option<RunId>,
}

impl Marks {
    fn of(entry: Option<&Entry>) -> Self {
        let rank = entry.and_then(|entry| Rank::of(entry.place));
        let run = rank.and(entry).and_then(|entry| entry.state.run());
        Self { rank, run }
    }

    fn tested(&self) -> Option<(RunId, Rank)> {
        self.run.zip(self.rank)
    }

    fn restarted(&self) -> Option<Rank> {
        self.rank.filter(|_| self.run.is_none())
    }
}

impl Started {
    /// Replaces the old version of an entry by the new one, which has this run.
    pub(super) fn replace(
        &mut self,
        old: Option<&Entry>,
        new: Option<&Arc<Entry>>,
        run: Option<&TestRun>,
    ) {
        self.aside += usize::from(new.is_some_and(|new| new.aside().is_some()));
        self.aside -= usize::from(old.is_some_and(|old| old.aside().is_some()));
        let (was, is) = (Marks::of(old), Marks::of(new.map(AsRef::as_ref)));
        if was != is {
            exchange(&mut self.of_run, was.tested(), is.tested());
            exchange(&mut self.restarted, was.restarted(), is.restarted());
            if let Some(rank) = was.rank.filter(|_| was.rank != is.rank || is.run.is_none()) {
                self.under.remove(&rank);
            }
            if let Some(rank) = was.rank.filter(|_| was.rank != is.rank) {
                self.places.remove(&rank);
                if new.is_some() {
                    self.forget_above(rank);
                }
            }
        }
        if let (Some(rank), Some(entry)) = (is.rank, new) {
            let candidate = run.and_then(|run| run.candidate.as_ref()).map(|it| it.sha.clone());
            let alone = |run: &TestRun| matches!(&*run.group, [only] if only.entry == entry.id);
            let shares_run = run.is_some_and(|run| !alone(run));
            let known = self.places.get(&rank);
            let known = known.filter(|it| it.entry.pull_request == entry.pull_request);
            let change =
                known.map_or_else(|| Arc::new(Change::of(entry)), |known| known.change.clone());
            let entry = entry.clone();
            let placed = Placed { entry, candidate, shares_run, change };
            self.places.insert(rank, Arc::new(placed));
        }
    }

    /// Forgets what entries behind this rank depend on, if any depends on it: its entry has left
    /// its place and stays in the queue.
    fn forget_above(&mut self, rank: Rank) {
        let places = (Bound::Excluded(rank), Bound::Unbounded);
        if self.under.range(places).any(|(_, under)| under.binary_search(&rank).is_ok()) {
            self.forget_under();
        }
    }

    /// The number of entries that have a rank.
    pub(super) const fn count(&self) -> usize {
        self.places.size()
    }

    /// The entry at this rank.
    pub(super) fn at(&self, rank: Rank) -> Option<&Entry> {
        self.places.get(&rank).map(|placed| &*placed.entry)
    }

    /// The entries ahead of this rank, or all of them for `None`, in line order.
    pub(super) fn before(
        &self,
        rank: Option<Rank>,
    ) -> impl DoubleEndedIterator<Item = (Rank, &Placed)> {
        let last = rank.map_or(Bound::Unbounded, Bound::Excluded);
        self.places.range((Bound::Unbounded, last)).map(|(rank, placed)| (*rank, &**placed))
    }

    /// The entries behind this rank, or all of them for `None`, nearest first.
    pub(super) fn behind(&self, rank: Option<Rank>) -> impl Iterator<Item = &Arc<Entry>> {
        let first = rank.map_or(Bound::Unbounded, Bound::Excluded);
        self.places.range((first, Bound::Unbounded)).map(|(_, placed)| &placed.entry)
    }

    /// The entries of a run, in line order: under test, passed or failed by it.
    pub(super) fn of_run(&self, run: RunId) -> impl Iterator<Item = &Arc<Entry>> {
        let ranks = self.of_run.range((run, FIRST)..).take_while(move |(of, _)| *of == run);
        ranks.filter_map(|(_, rank)| self.places.get(rank)).map(|placed| &placed.entry)
    }

    /// The ranks of entries without a run, in line order.
    pub(super) fn restarted(&self) -> impl Iterator<Item = &Rank> {
        self.restarted.iter()
    }

    /// Whether an urgent entry is at the front.
    pub(super) fn has_front(&self) -> bool {
        self.places.first().is_some_and(|(rank, _)| rank.at_front.0)
    }

    /// What the entry at this rank depended on when its run was started, if known.
    pub(super) fn under(&self, rank: Rank) -> Option<&Arc<[Rank]>> {
        self.under.get(&rank)
    }

    /// Records what the entry at this rank depends on.
    pub(super) fn set_under(&mut self, rank: Rank, under: Arc<[Rank]>) {
        self.under.insert(rank, under);
    }

    /// Forgets all dependencies, because the order or the targets of started entries have changed.
    pub(super) fn forget_under(&mut self) {
        self.under = SortedMap::default();
    }
}

pub(super) fn exchange<T: Ord + Copy>(set: &mut SortedSet<T>, old: Option<T>, new: Option<T>) {
    if old == new {
        return;
    }
    if let Some(old) = old {
        set.remove(&old);
    }
    if let Some(new) = new {
        set.insert(new);
    }
}

impl Queue {
    /// The entries in the line ahead of this key that candidates contain, nearest first.
    pub(super) fn before(&self, key: OrderKey) -> impl Iterator<Item = &Entry> {
        let keys = self.line.range(..key).rev();
        keys.filter_map(|key| self.entry_of(key.pr())).filter(|entry| !entry.is_held())
    }

    /// The entries in the line behind this key, nearest first.
    pub(super) fn behind(&self, key: OrderKey) -> impl Iterator<Item = &Entry> {
        let places = (Bound::Excluded(key), Bound::Excluded(OrderKey::first_outside()));
        self.line.range(places).filter_map(|key| self.entry_of(key.pr()))
    }
}
