//! What follows by itself once an input has been taken in.

use crate::ids::EntryId;

use super::super::state::QueueState;
use super::super::{
    Actor, Decision, Entry, EntryState, EventKind, LinePosition, PrState, Queue, QueuedReason,
    lanes,
};
use super::builder::{Because, TransitionBuilder};
use super::{bisect, checks, land, leave, start};

/// Lets the queue go as far as it can: each round may make the next one possible.
pub(super) fn advance(builder: &mut TransitionBuilder) {
    while finish_switch(builder)
        || checks::settle(builder)
        || bisect::judge_implied(builder)
        || land::land(builder)
        || start::start(builder)
    {}
}

/// Whether no entry is in the line.
pub(super) fn line_is_empty(queue: &Queue) -> bool {
    queue.entries_in_order().next().is_none_or(|first| first.place == LinePosition::Outside)
}

/// Moves the queue to another state, and lets in whom that lets in.
pub(super) fn change_state(
    builder: &mut TransitionBuilder,
    to: QueueState,
    by: &Actor,
    reason: Option<&str>,
) {
    let from = builder.queue.header.state.name();
    let reason = reason.map(ToOwned::to_owned);
    builder.decision(Decision::QueueMoved {
        from,
        to: to.name(),
        actor: by.clone(),
        reason: reason.clone(),
    });
    builder.queue.header.state = to;
    builder.tell_queue(EventKind::QueueStateChanged, by, from, reason);
    admit_all(builder);
}

/// Modes are switched when the line is empty.
fn finish_switch(builder: &mut TransitionBuilder) -> bool {
    let state = &builder.queue.header.state;
    if state.switching_from().is_none() || !line_is_empty(&builder.queue) {
        return false;
    }
    let next = match &mut builder.queue.header.state {
        QueueState::Paused { switching_from, .. } => {
            *switching_from = None;
            return true;
        }
        QueueState::SwitchingModes { draining: true, .. } => QueueState::Draining,
        QueueState::SwitchingModes { draining: false, .. }
        | QueueState::Running
        | QueueState::Draining => QueueState::Running,
    };
    change_state(builder, next, &Actor::Queue, None);
    true
}

/// Lets an entry into the line if nothing is missing and the queue lets entries in.
pub(super) fn admit(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let ready = || entry.readiness(&builder.queue.header.branch, builder.queue.mode()).is_ready();
    if entry.state != EntryState::NotReady || !builder.queue.header.state.lets_in() || !ready() {
        return;
    }
    let (at, number) = (builder.at, builder.number());
    builder.change_entry(id, |entry| {
        entry.place = LinePosition::Waiting { since: at, number };
        entry.entered_line_at = Some(at);
    });
    let reason = QueuedReason::NowReady;
    let to = EntryState::Pending { reason, held_by: None, was_held_by: None };
    builder.move_entry(id, to, Because::new(reason, &Actor::Queue));
    if entry.priority.is_urgent() {
        go_to_the_front(builder, id);
    }
}

/// Lets every entry in that may enter.
pub(super) fn admit_all(builder: &mut TransitionBuilder) {
    if !builder.queue.header.state.lets_in() {
        return;
    }
    let outside: Vec<EntryId> = builder
        .queue
        .entries_in_order()
        .filter(|entry| entry.state.name() == PrState::NotReady)
        .map(|entry| entry.id)
        .collect();
    for id in outside {
        admit(builder, id);
    }
}

/// Puts an urgent entry behind the urgent ones that came before it, and ahead of all others.
/// Everything behind it that is under test or tested does not contain it and goes back to the
/// line, but what is landing. If it was under test itself, what it was built on is now behind it.
pub(super) fn go_to_the_front(builder: &mut TransitionBuilder, id: EntryId) {
    let number = builder.number();
    builder.change_entry(id, |entry| {
        entry.place = LinePosition::Front { number };
        if let EntryState::Pending { held_by, .. } = &mut entry.state {
            // What it conflicts with is now behind it.
            *held_by = None;
        }
    });
    interrupt_behind(builder, id);
}

/// Sends everything back to the line that stands behind this entry, depends on it and does not
/// contain it; in PARALLEL mode only its lane. If it was under test itself, what it was built on
/// is now behind it.
fn interrupt_behind(builder: &mut TransitionBuilder, id: EntryId) {
    let reason = QueuedReason::SkipTheLineInterrupted;
    let queue = builder.queue.clone();
    let Some(entry) = queue.entry(id) else { return };
    let behind = lanes::in_line(&queue).skip_while(|other| other.id != id);
    // One without targets does not meet itself, and yet its run may contain what is now behind it.
    let goes_back = |other: &&Entry| other.id == id || lanes::meet(queue.mode(), other, entry);
    for other in behind.filter(goes_back) {
        if let Some(run) = other.state.run() {
            leave::requeue_run_and_behind(builder, run, reason);
        }
        if other.part.is_some() {
            bisect::forget_parts(builder, other);
        }
    }
}

/// The targets of an entry in the line are no longer what they were: it is tested anew, behind
/// those that have their places, and so is what was built on it.
pub(super) fn targets_changed(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let reason = QueuedReason::TargetsChanged;
    if let Some(run) = entry.state.run() {
        leave::requeue_run(builder, run, reason, &Actor::Queue);
    }
    leave::requeue_all_on(builder, entry.pr, reason);
    bisect::forget_parts(builder, &entry);
    builder.change_entry(id, |entry| entry.part = None);
    match entry.place {
        LinePosition::Anchored { .. } => {
            let since = entry.entered_line_at.unwrap_or(builder.at);
            let number = builder.number();
            builder.change_entry(id, |entry| entry.place = LinePosition::Waiting { since, number });
        }
        LinePosition::Front { .. } => interrupt_behind(builder, id),
        LinePosition::Waiting { .. } | LinePosition::Outside => {}
    }
}

/// An entry that was submitted again as urgent goes to the front, if it is in the line and not
/// landing already.
pub(super) fn turned_urgent(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id).filter(|entry| !leave::is_landing(builder, entry)) else {
        return;
    };
    if let LinePosition::Waiting { .. } | LinePosition::Anchored { .. } = entry.place {
        go_to_the_front(builder, id);
    }
}

/// An entry that is no longer urgent keeps its place if others were built on it, else it waits
/// among the others.
pub(super) fn turned_ordinary(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let built_on = builder.queue.runs().any(|run| run.ahead.iter().any(|(_, pr)| *pr == entry.pr));
    if matches!(entry.place, LinePosition::Front { .. }) && entry.state.run().is_none() && !built_on
    {
        let since = entry.entered_line_at.unwrap_or(builder.at);
        let number = builder.number();
        builder.change_entry(id, |entry| entry.place = LinePosition::Waiting { since, number });
    }
}
