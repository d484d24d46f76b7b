//! Indexes of waiting entries: which of them can be started when a slot is free.
//!
//! Without them every step would scan the whole line. An entry that is blocked by another one is
//! checked again only when that one changes. The indexes are a cache derived from the queue, not
//! part of its state.

use crate::ids::PrNumber;

use super::order::OrderKey;
use super::sorted::{SortedMap, SortedSet};
use super::{Dependency, DependencyState, Entry, EntryState, LinePosition};

/// The waiting entries of the line.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// Entries not known to be blocked, in line order.
    open: SortedSet<OrderKey>,
    /// Blocked entries: the blocker, and their own keys.
    blocked: SortedMap<PrNumber, (PrNumber, OrderKey)>,
    /// Pairs of blocker and blocked entry.
    blockers: SortedSet<(PrNumber, PrNumber)>,
    /// Entries held by a conflict: pairs of the entry ahead and the held one.
    held: SortedSet<(PrNumber, PrNumber)>,
    /// Pairs of a dependency that has not merged and the entry that depends on it.
    dependents: SortedSet<(Dependency, PrNumber)>,
    /// The entries in the line with a dependency that was read and has not merged.
    gated: SortedSet<PrNumber>,
    /// The number of entries that wait as parts of bisected batches.
    pub(super) parts: usize,
    /// The number of urgent entries in the line, whether they wait or not.
    pub(super) urgent: usize,
}

/// Whether an entry is in the line and urgent.
fn is_urgent(entry: &Entry) -> bool {
    entry.place != LinePosition::Outside && entry.priority.is_urgent()
}

impl Waiting {
    /// The number of waiting entries of the line.
    pub(super) fn count(&self) -> usize {
        self.open.size() + self.blocked.size()
    }

    /// The entries that may be startable, in line order.
    pub(super) fn open(&self) -> impl Iterator<Item = &OrderKey> {
        self.open.iter()
    }

    /// The entries that a conflict with this pull request holds.
    pub(super) fn held_by(&self, holder: PrNumber) -> impl Iterator<Item = PrNumber> {
        let all = (holder, PrNumber(0))..=(holder, PrNumber(u32::MAX));
        self.held.range(all).map(|(_, held)| *held)
    }

    /// The entries that depend on this pull request, if it has not merged.
    pub(super) fn dependents<'a>(
        &'a self,
        on: &'a Dependency,
    ) -> impl Iterator<Item = PrNumber> + 'a {
        let from = (on.clone(), PrNumber(0));
        self.dependents.range(from..).take_while(move |(it, _)| it == on).map(|(_, pr)| *pr)
    }

    /// The dependencies of all entries that have not merged, each once.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = &Dependency> {
        let mut last = None;
        self.dependents.iter().map(|(on, _)| on).filter(move |on| last.replace(*on) != Some(*on))
    }

    /// The entries in the line with a dependency that was read and has not merged.
    pub(super) fn gated(&self) -> impl Iterator<Item = PrNumber> {
        self.gated.iter().copied()
    }

    /// Whether a conflict holds any entry.
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Replaces the old version of an entry by the new one.
    pub(super) fn replace(&mut self, old: Option<&Entry>, new: Option<&Entry>) {
        if let Some(old) = old {
            self.remove(old);
        }
        if let Some(new) = new {
            self.add(new);
        }
        if let Some(changed) = new.or(old) {
            self.wake(changed.pr);
        }
    }

    fn remove(&mut self, old: &Entry) {
        self.urgent -= usize::from(is_urgent(old));
        for it in old.unmerged_dependencies() {
            self.dependents.remove(&(it.on.clone(), old.pr));
            self.gated.remove(&old.pr);
        }
        if let EntryState::Pending { held_by: Some(holder), .. } = &old.state {
            self.held.remove(&(*holder, old.pr));
        }
        if old.waits_in_line() {
            self.parts -= usize::from(old.part.is_some());
            self.open.remove(&OrderKey::of(old));
            if let Some((by, _)) = self.blocked.get(&old.pr).copied() {
                self.blocked.remove(&old.pr);
                self.blockers.remove(&(by, old.pr));
            }
        }
    }

    fn add(&mut self, new: &Entry) {
        self.urgent += usize::from(is_urgent(new));
        for it in new.unmerged_dependencies() {
            self.dependents.insert((it.on.clone(), new.pr));
            if new.place != LinePosition::Outside && it.state != DependencyState::Unread {
                self.gated.insert(new.pr);
            }
        }
        if let EntryState::Pending { held_by: Some(holder), .. } = &new.state {
            self.held.insert((*holder, new.pr));
        }
        if new.waits_in_line() {
            self.parts += usize::from(new.part.is_some());
            self.open.insert(OrderKey::of(new));
        }
    }

    /// Records that an entry is blocked by another one.
    pub(super) fn block(&mut self, key: OrderKey, pr: PrNumber, by: PrNumber) {
        if self.open.remove(&key) {
            self.blocked.insert(pr, (by, key));
            self.blockers.insert((by, pr));
        }
    }

    /// Unblocks the entries that a changed entry blocked.
    pub(super) fn wake(&mut self, blocker: PrNumber) {
        let all = (blocker, PrNumber(0))..=(blocker, PrNumber(u32::MAX));
        let woken: Vec<PrNumber> = self.blockers.range(all).map(|(_, pr)| *pr).collect();
        for pr in woken {
            self.blockers.remove(&(blocker, pr));
            if let Some((_, key)) = self.blocked.get(&pr).copied() {
                self.blocked.remove(&pr);
                self.open.insert(key);
            }
        }
    }

    /// Unblocks every entry, after a change of settings.
    pub(super) fn wake_all(&mut self) {
        let blocked: Vec<OrderKey> = self.blocked.values().map(|(_, key)| *key).collect();
        for key in blocked {
            self.open.insert(key);
        }
        self.blocked = SortedMap::default();
        self.blockers = SortedSet::default();
    }
}
