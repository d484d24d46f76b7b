//! Leaving the queue, and going back to the line.

use crate::ids::{EntryId, PrNumber, RunId};

use super::super::{Actor, Entry, EntryState, Exit, QueuedReason, RunCancelReason, RunStatus};
use super::bisect;
use super::draft::{Because, Draft};

/// Whether the entry is being put on the target at this moment. Nothing may be done to it until
/// the host has answered.
pub(super) fn is_landing(draft: &Draft, entry: &Entry) -> bool {
    let landing = draft.queue.header.landing.as_ref();
    landing.zip(entry.state.run()).is_some_and(|(landing, run)| landing.runs.contains(&run))
}

/// Takes an entry out. Whatever was built on it without it being on the target starts again.
pub(super) fn leave(draft: &mut Draft, id: EntryId, exit: Exit, actor: &Actor) {
    let Some(entry) = draft.entry(id) else { return };
    let (pr, run) = (entry.pr, entry.state.run());
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
    let on_target = matches!(exit, Exit::Merged { .. }) && its_changes_are_on_target(draft, run);
    draft.move_entry(id, EntryState::Ended(exit), because);
    release_held_by(draft, pr);
    if let Some(run) = run {
        // The rest of its group was tested together with it.
        requeue_run(draft, run, reason, &Actor::Queue);
    }
    if !on_target {
        requeue_all_on(draft, pr, reason);
        bisect::forget_parts(draft, &entry);
    }
}

/// Whether the target's tree is the one that this run built: then what was built on the run is
/// still what would land.
fn its_changes_are_on_target(draft: &Draft, run: Option<RunId>) -> bool {
    let candidate = run.and_then(|run| draft.run(run)?.candidate.clone());
    let tree = draft.queue.header.target.tree.as_ref();
    candidate.is_some_and(|candidate| tree == Some(&candidate.tree))
}

/// Sends every entry whose candidate contains that pull request back to the line.
pub(super) fn requeue_all_on(draft: &mut Draft, pr: PrNumber, reason: QueuedReason) {
    let behind: Vec<RunId> = draft
        .queue
        .runs()
        .filter(|run| run.ahead.iter().any(|(_, ahead)| *ahead == pr))
        .map(|run| run.id)
        .collect();
    for run in behind {
        requeue_run(draft, run, reason, &Actor::Queue);
    }
}

/// Sends every entry with a run back to the line, but those that are landing.
pub(super) fn requeue_all(draft: &mut Draft, reason: QueuedReason) {
    let runs: Vec<RunId> = draft.queue.runs().map(|run| run.id).collect();
    for run in runs {
        requeue_run(draft, run, reason, &Actor::Queue);
    }
}

/// Ends a run that is no longer wanted, if it is under way.
pub(super) fn give_up(draft: &mut Draft, id: RunId, reason: impl Into<RunCancelReason>) {
    draft.end_run(id, RunStatus::Cancelled { reason: reason.into() });
}

/// Gives a run up, and every run whose candidate contains something that it was to prove.
pub(super) fn requeue_run_and_behind(draft: &mut Draft, id: RunId, reason: QueuedReason) {
    let Some(run) = draft.run(id) else { return };
    requeue_run(draft, id, reason, &Actor::Queue);
    for member in &run.group {
        requeue_all_on(draft, member.pr, reason);
    }
}

/// Gives a run up: the entries that are under test by it, or passed or failed by it, go back to
/// the line and keep their places.
pub(super) fn requeue_run(draft: &mut Draft, id: RunId, reason: QueuedReason, actor: &Actor) {
    let landing = draft.queue.header.landing.as_ref();
    if landing.is_some_and(|landing| landing.runs.contains(&id)) {
        return;
    }
    let Some(run) = draft.run(id) else { return };
    give_up(draft, id, reason);
    for pr in run.prs() {
        let entry = draft.queue.entry_of(pr).filter(|it| it.state.run() == Some(id)).cloned();
        let Some(entry) = entry else { continue };
        let was_held_by = match &entry.state {
            EntryState::Testing { was_held_by, .. } => *was_held_by,
            EntryState::NotReady
            | EntryState::Pending { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. }
            | EntryState::Ended(_) => None,
        };
        let to = EntryState::Pending { reason, held_by: None, was_held_by };
        draft.move_entry(entry.id, to, Because::new(reason, actor));
        after_requeue(draft, &entry, reason);
    }
}

/// A restart asks for new results of the same part. Any other return to the line makes the entry
/// one like others: it may be batched anew.
fn after_requeue(draft: &mut Draft, before: &Entry, reason: QueuedReason) {
    if matches!(reason, QueuedReason::RestartedByApi | QueuedReason::RestartedByUser) {
        draft.change_entry(before.id, |entry| entry.proven = None);
    } else if before.part.is_some() {
        draft.change_entry(before.id, |entry| entry.part = None);
        bisect::forget_parts(draft, before);
    }
}

/// Lets entries go that were held because they conflict with a pull request that has left.
pub(super) fn release_held_by(draft: &mut Draft, pr: PrNumber) {
    let held: Vec<EntryId> = draft
        .queue
        .waiting
        .held_by(pr)
        .filter_map(|pr| draft.queue.entry_of(pr).map(|entry| entry.id))
        .collect();
    for id in held {
        draft.change_entry(id, |entry| {
            if let EntryState::Pending { held_by, was_held_by, .. } = &mut entry.state {
                *was_held_by = held_by.take();
            }
        });
    }
}
