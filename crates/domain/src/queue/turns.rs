//! Turns: with fair share, waiting entries of one priority are started by turn. An entry's turn is one
//! more than the last turn of its author, and than the last turn that was started.
//!
//! So an author with many entries is overtaken by others, but no entry is once its turn is the next one.

use std::collections::BTreeMap;

use crate::ids::{EntryId, PrNumber};

use super::order::OrderKey;
use super::sorted::SortedSet;
use super::{Entry, LinePosition, Priority, PullRequest, Queue, Settings, share};

/// The turns of the entries that wait for their first run, by priority and author. Empty without fair
/// share. It is a cache derived from the queue, not part of its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns(SortedSet<(u32, String, u32, PrNumber)>);

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
            self.0.remove(&old);
        }
        if let Some(new) = new {
            self.0.insert(new);
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
    if !settings.fair_share {
        return 0;
    }
    let last = queue.turns.last(priority, share::of(settings, pull_request));
    last.unwrap_or_default().max(again(queue, priority)).saturating_add(1)
}

/// The turn of an entry that was started, and waits again: it goes ahead of newcomers.
pub(super) fn again(queue: &Queue, priority: Priority) -> u32 {
    queue.header.started_turns.get(&priority.value).copied().unwrap_or_default()
}

/// Notes that a waiting entry is started.
pub(super) fn start(queue: &mut Queue, entry: &Entry) {
    let LinePosition::Waiting { turn, .. } = entry.place else { return };
    if queue.header.settings.fair_share {
        let last = queue.header.started_turns.entry(entry.priority.value).or_default();
        *last = turn.max(*last);
    }
}

/// Forgets the turns of priorities with which no entry waits.
pub(super) fn forget(queue: &mut Queue) {
    let waits = |priority: u32| {
        let first = OrderKey::first_waiting(Priority::number(priority));
        queue.line.range(first..).next().is_some_and(|key| key.waits_with(priority))
    };
    let gone: Vec<u32> =
        queue.header.started_turns.keys().copied().filter(|it| !waits(*it)).collect();
    for priority in gone {
        queue.header.started_turns.remove(&priority);
    }
}

/// The entry behind one that has just entered the line, if that one has overtaken it.
pub(super) fn overtaken(queue: &Queue, entry: &Entry) -> Option<PrNumber> {
    if !queue.header.settings.fair_share {
        return None;
    }
    let behind = queue.behind(OrderKey::of(entry)).next()?;
    OrderKey::of(behind).waits_with(entry.priority.value).then_some(behind.pr)
}

/// The turns of all waiting entries after a change of settings: as if they entered the line now, in the
/// order in which they did, and none was started.
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
            return u32::from(settings.fair_share);
        }
        let last = used.entry((priority.value, of)).or_default();
        *last += 1;
        *last
    };
    waiting.into_iter().map(|(_, entry)| (entry.id, turn(entry))).collect()
}

/// Builds the index again.
pub(super) fn rebuild(queue: &mut Queue) {
    queue.turns = Turns::of(&queue.header.settings, queue.entries_in_order());
}
