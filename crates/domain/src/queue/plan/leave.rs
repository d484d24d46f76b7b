//! Leaving the queue, and going back to the line.

use std::sync::Arc;

use crate::ids::{EntryId, PrNumber, RunId};

use super::super::{
    Actor, Entry, EntryState, Exit, Queue, QueuedReason, RunCancelReason, RunStatus, TestRun,
};
use super::bisect;
use super::builder::{Because, TransitionBuilder};

/// Whether the entry is landing. It must not change until the host has answered.
pub(super) fn is_landing(queue: &Queue, entry: &Entry) -> bool {
    let landing = queue.header.landing.as_ref();
    landing.zip(entry.state.run()).is_some_and(|(landing, run)| landing.runs.contains(&run))
}

/// Removes an entry. Runs built on it start again, unless its changes are on the target.
pub(super) fn leave(builder: &mut TransitionBuilder, id: EntryId, exit: Exit, actor: &Actor) {
    if let Some(entry) = builder.entry(id) {
        leave_as(builder, &entry, exit, actor);
    }
}

/// Removes an entry, given as it was tested: after a push its targets are unknown, but what was built
/// with it depended on the targets of its former head.
pub(super) fn leave_as(builder: &mut TransitionBuilder, entry: &Entry, exit: Exit, actor: &Actor) {
    let (id, pr, run) = (entry.id, entry.pr, entry.state.run());
    let details = match &exit {
        Exit::Failed { details, .. } => details.clone(),
        Exit::Merged { .. } | Exit::Cancelled { .. } => Vec::new(),
    };
    let reason = match &exit {
        Exit::Merged { .. } => QueuedReason::PredecessorMergedManually,
        Exit::Failed { .. } => QueuedReason::PredecessorFailed,
        Exit::Cancelled { .. } => QueuedReason::PredecessorCancelled,
    };
    let because = Because::new(exit.reason(), actor).with(details);
    // What is in the line was built without an entry beside it.
    let on_target = matches!(exit, Exit::Merged { .. })
        && entry.aside().is_none()
        && its_changes_are_on_target(builder, run);
    builder.move_entry(id, EntryState::Ended(exit), because);
    release_held_by(builder, pr);
    if let Some(run) = run {
        // The rest of its group was tested together with it and starts again.
        requeue_run(builder, run, reason, &Actor::Queue);
    }
    if on_target {
        // Runs stay that depended on others through this entry.
        builder.queue.started.forget_under();
    } else {
        requeue_all_on(builder, pr, reason);
        bisect::forget_parts(builder, entry);
    }
}

/// Removes an entry from the line until it may enter again. What was tested with it, and candidates that
/// are built on it, start again without it, for the reason `others`.
pub(super) fn leave_line(
    builder: &mut TransitionBuilder,
    id: EntryId,
    because: Because<'_>,
    others: QueuedReason,
) {
    let Some(entry) = builder.entry(id) else { return };
    builder.move_entry(id, EntryState::NotReady, because);
    release_held_by(builder, entry.pr);
    if let Some(run) = entry.state.run() {
        requeue_run(builder, run, others, &Actor::Queue);
    }
    requeue_all_on(builder, entry.pr, others);
    bisect::forget_parts(builder, &entry);
}

/// Whether the target's tree is the one that this run built. If so, candidates built on the run
/// stay valid.
fn its_changes_are_on_target(builder: &TransitionBuilder, run: Option<RunId>) -> bool {
    let candidate = run.and_then(|run| builder.run(run)?.candidate.clone());
    let tree = builder.queue.header.target.tree.as_ref();
    candidate.is_some_and(|candidate| tree == Some(&candidate.tree))
}

/// Returns every entry whose candidate contains this pull request to the line.
pub(super) fn requeue_all_on(builder: &mut TransitionBuilder, pr: PrNumber, reason: QueuedReason) {
    let behind: Vec<RunId> = builder
        .queue
        .runs()
        .filter(|run| run.ahead.iter().any(|(_, ahead)| *ahead == pr))
        .map(|run| run.id)
        .collect();
    for run in behind {
        requeue_run(builder, run, reason, &Actor::Queue);
    }
}

/// Returns every entry with a run to the line, except for landing ones.
pub(super) fn requeue_all(builder: &mut TransitionBuilder, reason: QueuedReason) {
    let runs: Vec<RunId> = builder.queue.runs().map(|run| run.id).collect();
    for run in runs {
        requeue_run(builder, run, reason, &Actor::Queue);
    }
}

/// Cancels a run, if it is still active.
pub(super) fn give_up(
    builder: &mut TransitionBuilder,
    id: RunId,
    reason: impl Into<RunCancelReason>,
) {
    builder.end_run(id, RunStatus::Cancelled { reason: reason.into() });
}

/// Cancels a run and every run whose candidate contains an entry of its group.
pub(super) fn requeue_run_and_behind(
    builder: &mut TransitionBuilder,
    id: RunId,
    reason: QueuedReason,
) {
    let Some(run) = builder.run(id) else { return };
    requeue_run(builder, id, reason, &Actor::Queue);
    for member in run.group.iter() {
        requeue_all_on(builder, member.pr, reason);
    }
}

/// Cancels a run: the entries that it tests, or that passed or failed by it, return to the line and
/// keep their places.
pub(super) fn requeue_run(
    builder: &mut TransitionBuilder,
    id: RunId,
    reason: QueuedReason,
    actor: &Actor,
) {
    let landing = builder.queue.header.landing.as_ref();
    if landing.is_some_and(|landing| landing.runs.contains(&id)) {
        return;
    }
    let Some(run) = builder.run(id) else { return };
    give_up(builder, id, reason);
    for entry in in_candidate_order(&builder.queue, &run) {
        let was_held_by = match &entry.state {
            EntryState::Testing { was_held_by, .. } => *was_held_by,
            EntryState::NotReady
            | EntryState::Pending { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. }
            | EntryState::Ended(_) => None,
        };
        let to = EntryState::Pending { reason, held_by: None, was_held_by };
        builder.move_entry(entry.id, to, Because::new(reason, actor));
        after_requeue(builder, &entry, reason);
    }
}

/// The entries of a run in the order of its candidate: the absolved ones, and its group.
pub(super) fn in_candidate_order(queue: &Queue, run: &TestRun) -> Vec<Arc<Entry>> {
    let mut entries: Vec<Arc<Entry>> = queue.started.of_run(run.id).cloned().collect();
    entries.sort_by_key(|entry| run.group.iter().position(|member| member.entry == entry.id));
    entries
}

/// Updates the part of a returned entry. After a restart it stays in its part; otherwise it becomes
/// an ordinary entry that may be batched again.
fn after_requeue(builder: &mut TransitionBuilder, before: &Entry, reason: QueuedReason) {
    if matches!(reason, QueuedReason::RestartedByApi | QueuedReason::RestartedByUser) {
        builder.change_entry(before.id, |entry| {
            entry.proven = None;
            entry.reparented = false;
        });
    } else if let Some(batch) = before.aside() {
        bisect::dissolve(builder, batch, reason);
    } else if before.part.is_some() {
        builder.change_entry(before.id, |entry| entry.part = None);
        bisect::forget_parts(builder, before);
    }
}

/// Releases the entries that conflict with a pull request that has left.
pub(super) fn release_held_by(builder: &mut TransitionBuilder, pr: PrNumber) {
    let held: Vec<EntryId> = builder
        .queue
        .waiting
        .held_by(pr)
        .filter_map(|pr| builder.queue.entry_of(pr).map(|entry| entry.id))
        .collect();
    for id in held {
        builder.change_entry(id, |entry| {
            if let EntryState::Pending { held_by, was_held_by, .. } = &mut entry.state {
                *was_held_by = held_by.take();
            }
        });
    }
}
