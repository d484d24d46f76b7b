//! Turns: among waiting entries of one priority, the first of every author goes ahead of the second of any other.
//!
//! An entry's turn is one more than the last turn of its author, and than the lowest turn that waits. So
//! an author with many entries is overtaken by others, but no entry is once its turn is the next one.

use std::collections::BTreeMap;

use rpds::RedBlackTreeSetSync;

use crate::ids::{EntryId, PrNumber};

use super::order::OrderKey;
use super::{Entry, LinePosition, Priority, PullRequest, Queue, Settings, share};

/// The turns of the entries that wait for their first run, by priority and author. Empty without fair
/// share. It is a cache derived from the queue, not part of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turns(RedBlackTreeSetSync<(u32, String, u32, PrNumber)>);

impl Default for Turns {
    fn default() -> Self {
        Self(RedBlackTreeSetSync::new_sync())
    }
}

impl Turns {
    /// The index of these entries.
    fn of<'a>(settings: &Settings, entries: impl Iterator<Item = &'a Entry>) -> Self {
        let mut turns = Self::default();
        for entry in entries {
            turns.replace(settings, None, Some(entry));
        }
        turns
    }

    /// Replaces the old version of an entry by the new one.
    pub(super) fn replace(
        &mut self,
        settings: &Settings,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) {
        if !settings.fair_share {
            return;
        }
        let key = |entry: &Entry| {
            let LinePosition::Waiting { turn, .. } = entry.place else { return None };
            let of = share::of(settings, &entry.pull_request);
            (!of.is_empty()).then(|| (entry.priority.value, of.to_owned(), turn, entry.pr))
        };
        let (old, new) = (old.and_then(key), new.and_then(key));
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.0.remove_mut(&old);
        }
        if let Some(new) = new {
            self.0.insert_mut(new);
        }
    }

    /// The last turn of an author.
    fn last(&self, priority: Priority, of: &str) -> Option<u32> {
        let from = |turn, pr| (priority.value, of.to_owned(), turn, PrNumber(pr));
        let mut own = self.0.range(from(0, 0)..=from(u32::MAX, u32::MAX));
        own.next_back().map(|(_, _, turn, _)| *turn)
    }
}

/// The turn of an entry that enters the line with this priority.
pub(super) fn next(queue: &Queue, pull_request: &PullRequest, priority: Priority) -> u32 {
    let settings = &queue.header.settings;
    let Some(lowest) = waiting_first(queue, priority).filter(|_| settings.fair_share) else {
        return 0;
    };
    let last = queue.turns.last(priority, share::of(settings, pull_request));
    last.map_or(lowest, |last| last.max(lowest)).saturating_add(1)
}

/// The turn of an entry that had a place in the line already, and waits again.
pub(super) fn again(queue: &Queue, priority: Priority) -> u32 {
    waiting_first(queue, priority).unwrap_or_default()
}

/// The lowest turn of the entries that wait with this priority.
fn waiting_first(queue: &Queue, priority: Priority) -> Option<u32> {
    let first = queue.line.range(OrderKey::first_waiting(priority)..).next()?;
    first.turn_of(priority)
}

/// The entry behind one that has just entered the line, if that one has overtaken it.
pub(super) fn overtaken(queue: &Queue, entry: &Entry) -> Option<PrNumber> {
    if !queue.header.settings.fair_share {
        return None;
    }
    let behind = queue.behind(OrderKey::of(entry)).next()?;
    OrderKey::of(behind).turn_of(entry.priority).map(|_| behind.pr)
}

/// The turns of all waiting entries after a change of settings: as if they entered the line now, in the
/// order in which they did.
pub(super) fn of_all<'a>(queue: &'a Queue) -> Vec<(EntryId, u32)> {
    let settings = &queue.header.settings;
    let since = |entry: &Entry| match entry.place {
        LinePosition::Waiting { since, number, .. } => Some((since, number)),
        LinePosition::Outside | LinePosition::Front { .. } | LinePosition::Anchored { .. } => None,
    };
    let waiting = queue.entries_in_order().filter_map(|entry| Some((since(entry)?, entry)));
    let mut waiting: Vec<_> = waiting.collect();
    waiting.sort_by_key(|(since, _)| *since);
    let mut used: BTreeMap<(u32, &'a str), u32> = BTreeMap::new();
    let mut turn = |entry: &'a Entry| {
        let Entry { priority, pull_request, .. } = entry;
        let of = share::of(settings, pull_request);
        if !settings.fair_share || of.is_empty() {
            return 0;
        }
        let next = used.entry((priority.value, of)).or_default();
        *next += 1;
        *next - 1
    };
    waiting.into_iter().map(|(_, entry)| (entry.id, turn(entry))).collect()
}

/// Builds the index again.
pub(super) fn rebuild(queue: &mut Queue) {
    queue.turns = Turns::of(&queue.header.settings, queue.entries_in_order());
}
