//! Indexes of waiting entries: which of them can be started when a slot is free.
//!
//! Without them every step would scan the whole line. An entry that is blocked by another one is
//! checked again only when that one changes. The indexes are a cache derived from the queue, not
//! part of its state.

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

use crate::ids::PrNumber;

use super::order::OrderKey;
use super::{Dependency, DependencyState, Entry, EntryState, LinePosition};

/// The waiting entries of the line.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Entries not known to be blocked, in line order.
    open: RedBlackTreeSetSync<OrderKey>,
    /// Blocked entries: the blocker, and their own keys.
    blocked: RedBlackTreeMapSync<PrNumber, (PrNumber, OrderKey)>,
    /// Pairs of blocker and blocked entry.
    blockers: RedBlackTreeSetSync<(PrNumber, PrNumber)>,
    /// Entries held by a conflict: pairs of the entry ahead and the held one.
    held: RedBlackTreeSetSync<(PrNumber, PrNumber)>,
    /// Pairs of a dependency that has not merged and the entry that depends on it.
    dependents: RedBlackTreeSetSync<(Dependency, PrNumber)>,
    /// The entries in the line with a dependency that was read and has not merged.
    gated: RedBlackTreeSetSync<PrNumber>,
    /// The number of entries that wait as parts of bisected batches.
    pub(super) parts: usize,
    /// The number of urgent entries in the line, whether they wait or not.
    pub(super) urgent: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            open: RedBlackTreeSetSync::new_sync(),
            blocked: RedBlackTreeMapSync::new_sync(),
            blockers: RedBlackTreeSetSync::new_sync(),
            held: RedBlackTreeSetSync::new_sync(),
            dependents: RedBlackTreeSetSync::new_sync(),
            gated: RedBlackTreeSetSync::new_sync(),
            parts: 0,
            urgent: 0,
        }
    }
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
            self.dependents.remove_mut(&(it.on.clone(), old.pr));
            self.gated.remove_mut(&old.pr);
        }
        if let EntryState::Pending { held_by: Some(holder), .. } = &old.state {
            self.held.remove_mut(&(*holder, old.pr));
        }
        if old.waits_in_line() {
            self.parts -= usize::from(old.part.is_some());
            self.open.remove_mut(&OrderKey::of(old));
            if let Some((by, _)) = self.blocked.get(&old.pr).copied() {
                self.blocked.remove_mut(&old.pr);
                self.blockers.remove_mut(&(by, old.pr));
            }
        }
    }

    fn add(&mut self, new: &Entry) {
        self.urgent += usize::from(is_urgent(new));
        for it in new.unmerged_dependencies() {
            self.dependents.insert_mut((it.on.clone(), new.pr));
            if new.place != LinePosition::Outside && it.state != DependencyState::Unread {
                self.gated.insert_mut(new.pr);
            }
        }
        if let EntryState::Pending { held_by: Some(holder), .. } = &new.state {
            self.held.insert_mut((*holder, new.pr));
        }
        if new.waits_in_line() {
            self.parts += usize::from(new.part.is_some());
            self.open.insert_mut(OrderKey::of(new));
        }
    }

    /// Records that an entry is blocked by another one.
    pub(super) fn block(&mut self, key: OrderKey, pr: PrNumber, by: PrNumber) {
        if self.open.remove_mut(&key) {
            self.blocked.insert_mut(pr, (by, key));
            self.blockers.insert_mut((by, pr));
        }
    }

    /// Unblocks the entries that a changed entry blocked.
    pub(super) fn wake(&mut self, blocker: PrNumber) {
        let all = (blocker, PrNumber(0))..=(blocker, PrNumber(u32::MAX));
        let woken: Vec<PrNumber> = self.blockers.range(all).map(|(_, pr)| *pr).collect();
        for pr in woken {
            self.blockers.remove_mut(&(blocker, pr));
            if let Some((_, key)) = self.blocked.get(&pr).copied() {
                self.blocked.remove_mut(&pr);
                self.open.insert_mut(key);
            }
        }
    }

    /// Unblocks every entry, after a change of settings.
    pub(super) fn wake_all(&mut self) {
        let blocked: Vec<OrderKey> = self.blocked.values().map(|(_, key)| *key).collect();
        for key in blocked {
            self.open.insert_mut(key);
        }
        self.blocked = RedBlackTreeMapSync::new_sync();
        self.blockers = RedBlackTreeSetSync::new_sync();
    }
}
