//! Freezes: during one, only urgent pull requests merge, and with `testWhileFrozen` off only they are
//! tested. A freeze with a scope keeps the pull requests that it applies to outside the line, so that the
//! others merge. A landing that has begun is completed.

use std::mem;

use crate::ids::EntryId;

use super::super::{
    Actor, Decision, Entry, EntryState, Freeze, FreezeScope, FreezeState, LinePosition,
    PartialFreeze, Queue, QueuedReason, Reason, TestRun, lanes,
};
use super::builder::{Because, TransitionBuilder};
use super::{advance, leave};

/// Starts or ends a freeze that is due, and puts the entries into the line that it kept outside.
pub(super) fn update(builder: &mut TransitionBuilder) {
    if builder.queue.header.freeze.due.is_some_and(|due| due <= builder.at) {
        apply_rules(builder);
        advance::admit_all(builder);
    }
}

/// Evaluates the rules in the settings, and records when a freeze starts or ends.
pub(super) fn apply_rules(builder: &mut TransitionBuilder) {
    let header = &mut builder.queue.header;
    let now = FreezeState::at(&header.settings.freezes, builder.at);
    let before = mem::replace(&mut header.freeze, now.clone());
    let is_in = |list: &[PartialFreeze], scope: &FreezeScope| {
        list.iter().any(|freeze| freeze.scope == *scope)
    };
    for freeze in before.partial.iter().filter(|it| !is_in(&now.partial, &it.scope)) {
        let scope = freeze.scope.clone();
        builder.decision(Decision::PartialFreezeEnded { scope });
    }
    for freeze in now.partial.iter().filter(|it| !before.partial.contains(it)) {
        let PartialFreeze { scope, until, reason } = freeze.clone();
        builder.decision(Decision::PartialFreezeStarted { scope, until, reason });
    }
    match now.in_force {
        Some(freeze) if before.in_force.as_ref() == Some(&freeze) => {}
        Some(Freeze { until, reason }) => {
            builder.decision(Decision::FreezeStarted { until, reason });
        }
        None if before.in_force.is_some() => builder.decision(Decision::FreezeEnded),
        None => {}
    }
}

/// The freeze with a scope that keeps an entry outside the line; of several, the one that ends last.
pub(in super::super) fn excluding<'a>(
    queue: &'a Queue,
    entry: &Entry,
) -> Option<&'a PartialFreeze> {
    let freezes = queue.header.freeze.partial.iter();
    let covering = freezes.filter(|it| !entry.priority.is_urgent() && it.scope.covers(entry));
    covering.max_by_key(|it| (it.until.is_none(), it.until))
}

/// Removes an entry from the line to which a freeze with a scope applies. What was tested with it starts
/// again. Returns whether there was one.
pub(super) fn exclude_next(builder: &mut TransitionBuilder) -> bool {
    let queue = &builder.queue;
    if queue.header.freeze.partial.is_empty() {
        return false;
    }
    let is_next =
        |entry: &&Entry| !leave::is_landing(queue, entry) && excluding(queue, entry).is_some();
    let Some(id) = lanes::in_line(queue).find(is_next).map(|it| it.id) else { return false };
    let because = Because::new(Reason::Frozen, &Actor::Queue);
    leave::leave_line(builder, id, because, QueuedReason::PredecessorFrozen);
    true
}

/// The freeze in force that applies to all pull requests.
pub(in super::super) const fn in_force(queue: &Queue) -> Option<&Freeze> {
    queue.header.freeze.in_force.as_ref()
}

/// Whether a freeze keeps everything in the line from landing, because none of it is urgent.
pub(super) fn holds_all(queue: &Queue) -> bool {
    in_force(queue).is_some() && queue.waiting.urgent == 0
}

/// Whether a freeze keeps a passed run from landing, because a pull request that would land with it is
/// not urgent. What lands already does not count.
pub(in super::super) fn holds_landing(queue: &Queue, run: &TestRun) -> bool {
    let is_held = |entry: &Entry| !entry.priority.is_urgent() && !leave::is_landing(queue, entry);
    let mut members = run.group.iter().filter_map(|member| queue.entry(member.entry));
    in_force(queue).is_some()
        && (members.any(is_held) || lanes::live_ahead(queue, run).any(is_held))
}

/// Whether a freeze keeps an entry from being tested.
pub(in super::super) fn holds_tests(queue: &Queue, entry: &Entry) -> bool {
    let tests = queue.header.settings.test_while_frozen;
    !tests && in_force(queue).is_some() && !entry.priority.is_urgent()
}

/// During a freeze, moves an urgent entry ahead of the held ones, so that it is not built on
/// them. Without a freeze it keeps its place behind one that was urgent before, or in the group of
/// others. Returns whether there was such an entry.
pub(super) fn put_urgent_first(builder: &mut TransitionBuilder) -> bool {
    let queue = &builder.queue;
    if in_force(queue).is_none() || holds_all(queue) {
        return false;
    }
    let Some(id) = first_blocked(queue) else { return false };
    let is_held = |entry: &&Entry| {
        matches!(entry.place, LinePosition::Front { .. })
            && !entry.priority.is_urgent()
            && !leave::is_landing(queue, entry)
    };
    let held: Vec<EntryId> = lanes::in_line(queue).filter(is_held).map(|it| it.id).collect();
    if held.is_empty() {
        advance::go_to_the_front(builder, id);
    }
    for entry in held {
        advance::leave_the_front(builder, entry);
    }
    true
}

/// The first urgent entry of the line that does not land and is behind an entry that is held, or in a
/// candidate with one.
fn first_blocked(queue: &Queue) -> Option<EntryId> {
    let mut ahead: Vec<&Entry> = Vec::new();
    for entry in lanes::in_line(queue).filter(|entry| !leave::is_landing(queue, entry)) {
        if !entry.priority.is_urgent() {
            ahead.push(entry);
            continue;
        }
        if let EntryState::Pending { held_by: Some(holder), .. } = entry.state {
            let holder = queue.entry_of(holder);
            let is_held = |it: &Entry| !it.priority.is_urgent() && !leave::is_landing(queue, it);
            if holder.is_some_and(is_held) {
                return Some(entry.id);
            }
            // It is moved, if it has to be, when the other one has landed or left.
            continue;
        }
        let run = entry.state.run().and_then(|run| queue.run(run));
        if ahead.iter().any(|other| lanes::meet(queue.mode(), other, entry))
            || run.is_some_and(|run| holds_landing(queue, run))
        {
            return Some(entry.id);
        }
    }
    None
}
