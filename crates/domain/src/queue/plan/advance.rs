//! Follow-up of an input: the queue advances until nothing more can be done.

use crate::ids::EntryId;

use super::super::state::QueueState;
use super::super::{
    Actor, Decision, Entry, EntryState, EventKind, LinePosition, Priority, PullRequest, Queue,
    QueuedReason, lanes, turns,
};
use super::builder::{Because, TransitionBuilder};
use super::{bisect, checks, dependencies, frozen, land, leave, quota, red, start, window};

/// Settles, lands and starts until no rule applies; each round may enable the next.
pub(super) fn advance(builder: &mut TransitionBuilder) {
    frozen::update(builder);
    quota::update(builder);
    red::end(builder);
    window::end(builder);
    while dependencies::cancel_next(builder)
        || dependencies::follow_next(builder)
        || finish_switch(builder)
        || frozen::exclude_next(builder)
        || frozen::put_urgent_first(builder)
        || quota::admit_next(builder)
        || checks::settle(builder)
        || bisect::split_implied(builder)
        || bisect::rejoin(builder)
        || land::land(builder)
        || start::start(builder)
    {}
    turns::forget(&mut builder.queue);
}

/// Whether no entry is in the line.
pub(super) fn line_is_empty(queue: &Queue) -> bool {
    queue.entries_in_order().next().is_none_or(|first| first.place == LinePosition::Outside)
}

/// Moves the queue to another state, and admits the ready entries if that state does.
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
    builder.emit_queue(EventKind::QueueStateChanged, by, from, reason);
    admit_all(builder);
}

/// Completes a mode switch once the line is empty. Returns whether it did.
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

/// Puts an entry into the line if it is ready and the queue admits entries.
pub(super) fn admit(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let queue = &builder.queue;
    if entry.state != EntryState::NotReady
        || !queue.header.state.lets_in()
        || !super::is_ready(queue, &entry)
        || quota::excludes(queue, &entry)
        || frozen::excluding(queue, &entry).is_some()
    {
        return;
    }
    let turn = turns::next(queue, &entry.pull_request, entry.priority);
    let (at, number) = (builder.at, builder.number());
    quota::entered(builder, &entry);
    let enter = |entry: &mut Entry| {
        entry.place = LinePosition::Waiting { since: at, number, turn };
        entry.entered_line_at = Some(at);
    };
    let reason = QueuedReason::NowReady;
    let to = EntryState::Pending { reason, held_by: None, was_held_by: None };
    builder.change_and_move(id, enter, to, Because::new(reason, &Actor::Queue));
    if let Some(overtaken) = builder.entry(id).and_then(|it| turns::overtaken(&builder.queue, &it))
    {
        builder.decision(Decision::Overtook { pr: entry.pr, overtaken });
    }
    if entry.priority.is_urgent() {
        go_to_the_front(builder, id);
    }
}

/// Puts every ready entry into the line if the queue admits entries.
pub(super) fn admit_all(builder: &mut TransitionBuilder) {
    if !builder.queue.header.state.lets_in() {
        return;
    }
    quota::admit_outside(builder, |_| true);
}

/// Puts an urgent entry behind the urgent ones that came before it, and ahead of all others. Every
/// tested entry behind it, and every one under test, does not contain it and returns to the line,
/// except for landing ones. If the urgent entry was under test itself, its candidate contains
/// entries that are now behind it.
pub(super) fn go_to_the_front(builder: &mut TransitionBuilder, id: EntryId) {
    let number = builder.number();
    bisect::leave_aside(builder, id);
    if builder.queue.header.landing.is_some() {
        // What lands is not interrupted, although it may now depend on this entry.
        builder.queue.started.forget_under();
    }
    builder.change_entry(id, |entry| {
        entry.place = LinePosition::Front { number };
        if let EntryState::Pending { held_by, .. } = &mut entry.state {
            // The entry that it conflicts with is now behind it.
            *held_by = None;
        }
    });
    interrupt_behind(builder, id);
}

/// Returns to the line every entry behind this one that depends on it and does not contain it; in
/// PARALLEL mode only those of its lane. If this entry was under test itself, its candidate
/// contains entries that are now behind it.
fn interrupt_behind(builder: &mut TransitionBuilder, id: EntryId) {
    let reason = QueuedReason::SkipTheLineInterrupted;
    let queue = builder.queue.clone();
    let Some(entry) = queue.entry(id) else { return };
    let behind = lanes::in_line(&queue).skip_while(|other| other.id != id);
    // An entry with an empty target list does not meet itself, but its run may contain entries that
    // are now behind it.
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

/// Handles new targets of an entry in the line: it and the entries built on it are tested again,
/// behind the entries that keep their places.
pub(super) fn targets_changed(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    builder.queue.started.forget_under();
    let reason = QueuedReason::TargetsChanged;
    if let Some(run) = entry.state.run() {
        leave::requeue_run(builder, run, reason, &Actor::Queue);
    }
    leave::requeue_all_on(builder, entry.pr, reason);
    bisect::forget_parts(builder, &entry);
    builder.change_entry(id, |entry| entry.part = None);
    match entry.place {
        LinePosition::Anchored { .. } => {
            let turn = turns::again(&builder.queue, entry.priority);
            wait_by_priority(builder, &entry, turn);
        }
        LinePosition::Front { .. } => interrupt_behind(builder, id),
        LinePosition::Waiting { .. } | LinePosition::Outside => {}
    }
}

/// Moves an entry that was resubmitted as urgent to the front, if it is in the line and not
/// landing.
pub(super) fn turned_urgent(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id).filter(|entry| !leave::is_landing(&builder.queue, entry))
    else {
        return;
    };
    if let LinePosition::Waiting { .. } | LinePosition::Anchored { .. } = entry.place {
        go_to_the_front(builder, id);
    }
}

/// Handles a resubmission that is no longer urgent: the entry keeps its place if others were built
/// on it, otherwise it waits by priority.
pub(super) fn turned_ordinary(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let built_on = builder.queue.runs().any(|run| run.ahead.iter().any(|(_, pr)| *pr == entry.pr));
    if matches!(entry.place, LinePosition::Front { .. }) && entry.state.run().is_none() && !built_on
    {
        let turn = turns::next(&builder.queue, &entry.pull_request, entry.priority);
        wait_by_priority(builder, &entry, turn);
    }
}

/// Moves an entry that was urgent from the front of the line: it waits by priority, and what was built
/// on it starts again.
pub(super) fn leave_the_front(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let reason = QueuedReason::SkipTheLineInterrupted;
    if let Some(run) = entry.state.run() {
        leave::requeue_run_and_behind(builder, run, reason);
    }
    leave::requeue_all_on(builder, entry.pr, reason);
    let turn = turns::next(&builder.queue, &entry.pull_request, entry.priority);
    wait_by_priority(builder, &entry, turn);
    leave::release_held_by(builder, entry.pr);
}

fn wait_by_priority(builder: &mut TransitionBuilder, entry: &Entry, turn: u32) {
    let since = entry.entered_line_at.unwrap_or(builder.at);
    let number = builder.number();
    let place = LinePosition::Waiting { since, number, turn };
    builder.change_entry(entry.id, |entry| entry.place = place);
}

/// Gives a waiting entry, whose priority or author changes, its turn among the others.
pub(super) fn turn_changed(
    builder: &mut TransitionBuilder,
    id: EntryId,
    priority: Priority,
    seen: &PullRequest,
) {
    let Some(entry) = builder.entry(id) else { return };
    let LinePosition::Waiting { since, number, .. } = entry.place else { return };
    let turn = turns::next(&builder.queue, seen, priority);
    let place = LinePosition::Waiting { since, number, turn };
    builder.change_entry(id, |entry| entry.place = place);
}

/// Gives every waiting entry its turn under changed settings.
pub(super) fn turns_changed(builder: &mut TransitionBuilder) {
    for (id, turn) in turns::of_all(&builder.queue) {
        let Some(entry) = builder.entry(id) else { continue };
        let LinePosition::Waiting { since, number, turn: before } = entry.place else { continue };
        if turn != before {
            let place = LinePosition::Waiting { since, number, turn };
            builder.change_entry(id, |entry| entry.place = place);
        }
    }
    builder.queue.header.started_turns.clear();
    turns::rebuild(&mut builder.queue);
}
