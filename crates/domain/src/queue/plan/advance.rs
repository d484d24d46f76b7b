//! What follows by itself once an input has been taken in.

use crate::ids::EntryId;

use super::super::state::QueueState;
use super::super::{
    Actor, Decision, Entry, EntryState, EventKind, Place, PrState, Queue, QueuedReason,
};
use super::draft::{Because, Draft};
use super::{checks, leave, start};

/// Lets the queue go as far as it can: each round may make the next one possible.
pub(super) fn advance(draft: &mut Draft) {
    while finish_switch(draft) || checks::settle(draft) || start::land(draft) || start::start(draft)
    {
    }
}

/// Whether no entry is in the line.
pub(super) fn line_is_empty(queue: &Queue) -> bool {
    queue.entries_in_order().next().is_none_or(|first| first.place == Place::Outside)
}

/// Moves the queue to another state, and lets in whom that lets in.
pub(super) fn change_state(draft: &mut Draft, to: QueueState, by: &Actor, reason: Option<&str>) {
    let from = draft.queue.header.state.name();
    let reason = reason.map(ToOwned::to_owned);
    draft.decision(Decision::QueueMoved {
        from,
        to: to.name(),
        actor: by.to_string(),
        reason: reason.clone(),
    });
    draft.queue.header.state = to;
    draft.tell_queue(EventKind::QueueStateChanged, reason);
    admit_all(draft);
}

/// Modes are switched when the line is empty.
fn finish_switch(draft: &mut Draft) -> bool {
    let switching = matches!(draft.queue.header.state, QueueState::SwitchingModes { .. });
    if !switching || !line_is_empty(&draft.queue) {
        return false;
    }
    change_state(draft, QueueState::Running, &Actor::Queue, None);
    true
}

/// Lets an entry into the line if nothing is missing and the queue lets entries in.
pub(super) fn admit(draft: &mut Draft, id: EntryId) {
    let Some(entry) = draft.entry(id) else { return };
    let ready = || entry.readiness(&draft.queue.header.branch, draft.queue.mode()).is_ready();
    if entry.state != EntryState::NotReady || !draft.queue.header.state.lets_in() || !ready() {
        return;
    }
    let (at, number) = (draft.at, draft.number());
    draft.change_entry(id, |entry| {
        entry.place = Place::Waiting { since: at, number };
        entry.entered_line_at = Some(at);
    });
    let reason = QueuedReason::NowReady;
    let to = EntryState::Pending { reason, held_by: None, was_held_by: None };
    draft.move_entry(id, to, Because::new(reason.word(), &Actor::Queue));
    if entry.priority.is_urgent() {
        go_to_the_front(draft, id);
    }
}

/// Lets every entry in that may enter.
pub(super) fn admit_all(draft: &mut Draft) {
    if !draft.queue.header.state.lets_in() {
        return;
    }
    let outside: Vec<EntryId> = draft
        .queue
        .entries_in_order()
        .filter(|entry| entry.state.name() == PrState::NotReady)
        .map(|entry| entry.id)
        .collect();
    for id in outside {
        admit(draft, id);
    }
}

/// Puts an urgent entry behind the urgent ones that came before it, and ahead of all others.
/// Everything behind it that is under test or tested does not contain it and goes back to the
/// line, but what is landing. If it was under test itself, what it was built on is now behind it.
pub(super) fn go_to_the_front(draft: &mut Draft, id: EntryId) {
    let number = draft.number();
    draft.change_entry(id, |entry| {
        entry.place = Place::Front { number };
        if let EntryState::Pending { held_by, .. } = &mut entry.state {
            // What it conflicts with is now behind it.
            *held_by = None;
        }
    });
    let mut runs = Vec::new();
    let mut behind = false;
    for entry in draft.queue.entries_in_order() {
        behind |= entry.id == id;
        if behind {
            runs.extend(entry.state.run());
        }
    }
    for run in runs {
        leave::requeue_run(draft, run, QueuedReason::SkipTheLineInterrupted, &Actor::Queue);
    }
}

/// An entry that was submitted again as urgent goes to the front, if it is in the line.
pub(super) fn turned_urgent(draft: &mut Draft, id: EntryId) {
    let place = draft.entry(id).map(|entry| entry.place);
    if let Some(Place::Waiting { .. } | Place::Anchored { .. }) = place {
        go_to_the_front(draft, id);
    }
}

/// An entry that is no longer urgent keeps its place if others were built on it, else it waits
/// among the others.
pub(super) fn turned_ordinary(draft: &mut Draft, id: EntryId) {
    let Some(entry) = draft.entry(id) else { return };
    let built_on = draft.queue.runs().any(|run| run.ahead.iter().any(|(_, pr)| *pr == entry.pr));
    if matches!(entry.place, Place::Front { .. }) && entry.state.run().is_none() && !built_on {
        let since = entry.entered_line_at.unwrap_or(draft.at);
        let number = draft.number();
        draft.change_entry(id, |entry| entry.place = Place::Waiting { since, number });
    }
}

/// The entries in the line, in order.
pub(super) fn in_line(queue: &Queue) -> impl Iterator<Item = &Entry> {
    queue.entries_in_order().take_while(|entry| entry.place != Place::Outside)
}
