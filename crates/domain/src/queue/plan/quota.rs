//! The author limit: how many pull requests of one author may be in the line.

use std::collections::BTreeMap;

use crate::ids::EntryId;

use super::super::order::OrderKey;
use super::super::{Entry, EntryState, Queue, lanes};
use super::advance;
use super::builder::TransitionBuilder;

/// How many more pull requests of each author may enter the line.
pub(super) struct Room {
    /// `None` without a limit.
    limit: Option<usize>,
    used: BTreeMap<String, usize>,
}

impl Room {
    pub(super) fn of(queue: &Queue) -> Self {
        let limit = limit(queue);
        let mut used = BTreeMap::new();
        if limit.is_some() {
            for entry in lanes::in_line(queue) {
                *used.entry(entry.pull_request.author.clone()).or_default() += 1;
            }
        }
        Self { limit, used }
    }

    /// Whether an entry may enter the line; it is then counted.
    pub(super) fn admits(&mut self, entry: &Entry) -> bool {
        let Some(limit) = self.limit.filter(|_| is_limited(entry)) else { return true };
        let used = self.used.entry(entry.pull_request.author.clone()).or_default();
        *used += 1;
        *used <= limit
    }
}

fn limit(queue: &Queue) -> Option<usize> {
    let limit = queue.header.settings.author_limit;
    (limit > 0).then(|| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Whether the limit applies to an entry: it is not urgent, and its author is known.
pub(in super::super) fn is_limited(entry: &Entry) -> bool {
    !entry.priority.is_urgent() && !entry.pull_request.author.is_empty()
}

/// Whether the limit for its author keeps an entry outside the line.
pub(super) fn excludes(queue: &Queue, entry: &Entry) -> bool {
    let author = &entry.pull_request.author;
    limit(queue).filter(|_| is_limited(entry)).is_some_and(|limit| {
        let own = lanes::in_line(queue).filter(|it| it.pull_request.author == *author);
        own.take(limit).count() == limit
    })
}

/// Puts entries into the line whose authors have had others leave it. Returns whether there was such an
/// author.
pub(super) fn admit_next(builder: &mut TransitionBuilder) -> bool {
    let Some(author) = builder.left_line.pop_first() else { return false };
    if limit(&builder.queue).is_some() && builder.queue.header.state.lets_in() {
        admit_outside(builder, |entry| entry.pull_request.author == author);
    }
    true
}

/// Puts the entries into the line that may enter it, the one that has waited longest first.
pub(super) fn admit_outside(builder: &mut TransitionBuilder, which: impl Fn(&Entry) -> bool) {
    let queue = &builder.queue;
    let mut room = Room::of(queue);
    let outside = queue.line.range(OrderKey::first_outside()..);
    let outside = outside.filter_map(|key| queue.entry(key.entry()));
    let may_enter = |entry: &&Entry| {
        entry.state == EntryState::NotReady && which(entry) && super::is_ready(queue, entry)
    };
    let admitted: Vec<EntryId> =
        outside.filter(may_enter).filter(|it| room.admits(it)).map(|entry| entry.id).collect();
    for id in admitted {
        advance::admit(builder, id);
    }
}
