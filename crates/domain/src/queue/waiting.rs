//! Which waiting entries are worth a look when a slot is free.
//!
//! Without this every step would walk the whole line. An entry that was looked at and could not be
//! started because of another one is looked at again when that other one has changed. All of it
//! follows from the queue and what was looked at; it is no part of the state.

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

use crate::ids::PrNumber;

use super::order::OrderKey;
use super::{Entry, EntryState};

/// The entries that wait in the line.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Not known to be blocked, in line order.
    open: RedBlackTreeSetSync<OrderKey>,
    /// Blocked: by whom, and their keys.
    blocked: RedBlackTreeMapSync<PrNumber, (PrNumber, OrderKey)>,
    /// The blocker and whom it blocks.
    blockers: RedBlackTreeSetSync<(PrNumber, PrNumber)>,
    /// Held by a conflict: the holder and whom it holds.
    held: RedBlackTreeSetSync<(PrNumber, PrNumber)>,
    /// How many wait as parts of split batches.
    pub(super) parts: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            open: RedBlackTreeSetSync::new_sync(),
            blocked: RedBlackTreeMapSync::new_sync(),
            blockers: RedBlackTreeSetSync::new_sync(),
            held: RedBlackTreeSetSync::new_sync(),
            parts: 0,
        }
    }
}

impl Waiting {
    /// Those that are worth a look, in line order.
    pub(super) fn open(&self) -> impl Iterator<Item = &OrderKey> {
        self.open.iter()
    }

    /// Those that a pull request holds.
    pub(super) fn held_by(&self, holder: PrNumber) -> impl Iterator<Item = PrNumber> {
        let all = (holder, PrNumber(0))..=(holder, PrNumber(u32::MAX));
        self.held.range(all).map(|(_, held)| *held)
    }

    /// Takes an entry as it is now in, in place of what it was.
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
        if let EntryState::Pending { held_by: Some(holder), .. } = &new.state {
            self.held.insert_mut((*holder, new.pr));
        }
        if new.waits_in_line() {
            self.parts += usize::from(new.part.is_some());
            self.open.insert_mut(OrderKey::of(new));
        }
    }

    /// Notes that an entry cannot be started because of another one.
    pub(super) fn block(&mut self, key: OrderKey, pr: PrNumber, by: PrNumber) {
        if self.open.remove_mut(&key) {
            self.blocked.insert_mut(pr, (by, key));
            self.blockers.insert_mut((by, pr));
        }
    }

    /// An entry has changed: those that it blocked are looked at again.
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

    /// The settings have changed: everybody is looked at again.
    pub(super) fn wake_all(&mut self) {
        let blocked: Vec<OrderKey> = self.blocked.values().map(|(_, key)| *key).collect();
        for key in blocked {
            self.open.insert_mut(key);
        }
        self.blocked = RedBlackTreeMapSync::new_sync();
        self.blockers = RedBlackTreeSetSync::new_sync();
    }
}
