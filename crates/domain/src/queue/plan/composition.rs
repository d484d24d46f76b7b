//! What happens when a candidate is not its base with the changes of its pull requests: it is never
//! tested and never lands, its entries return to the line, and the queue is paused until a user
//! resumes it.

use crate::ids::{PrNumber, RunId};

use super::super::state::QueueState;
use super::super::{Actor, Decision, IgnoredBecause, Mismatch, QueuedReason, RunStatus};
use super::builder::TransitionBuilder;
use super::{advance, leave};

/// The most paths that the reason of a pause names; the event has more.
const NAMED_PATHS: usize = 3;

/// Handles a candidate that was composed wrongly.
pub(super) fn wrong(builder: &mut TransitionBuilder, id: RunId, mismatch: &Mismatch) {
    if builder.run(id).is_none_or(|run| run.status != RunStatus::Building) {
        return builder.ignored(IgnoredBecause::NoSuchRun);
    }
    stop(builder, id, mismatch);
}

/// Handles a commit that was composed wrongly and has therefore not landed.
pub(super) fn not_landed(builder: &mut TransitionBuilder, id: RunId, mismatch: &Mismatch) {
    stop(builder, id, mismatch);
}

fn stop(builder: &mut TransitionBuilder, id: RunId, mismatch: &Mismatch) {
    let Some(run) = builder.run(id) else { return };
    let prs: Vec<PrNumber> = run.group.iter().map(|member| member.pr).collect();
    builder.decision(Decision::CompositionMismatch { run: id, mismatch: mismatch.clone() });
    builder.emit_mismatch(id, prs.clone(), mismatch.clone());
    leave::requeue_run_and_behind(builder, id, QueuedReason::CompositionMismatch);
    let numbers = numbers(&prs);
    let reason = format!("the candidate of {numbers} is not its base {}", described(mismatch));
    pause(builder, &reason);
}

/// Pauses the queue because of a landing that was found to be wrong afterwards.
pub(super) fn landed_wrongly(
    builder: &mut TransitionBuilder,
    prs: &[PrNumber],
    mismatch: &Mismatch,
) {
    let (commit, numbers) = (&mismatch.commit, numbers(prs));
    let reason =
        format!("{commit}, which landed {numbers}, is not its base {}", described(mismatch));
    pause(builder, &reason);
}

fn numbers(prs: &[PrNumber]) -> String {
    let numbers: Vec<String> = prs.iter().map(|pr| format!("#{pr}")).collect();
    numbers.join(", ")
}

/// How a commit differs from its base with the changes.
fn described(mismatch: &Mismatch) -> String {
    let (base, found) = (&mismatch.base, &mismatch.found);
    let expected = mismatch.expected.as_ref().map(|it| format!(", expected {it}"));
    let named = mismatch.paths.iter().take(NAMED_PATHS).cloned().collect::<Vec<_>>().join(", ");
    let differs = match mismatch.paths.len().saturating_sub(NAMED_PATHS) {
        _ if named.is_empty() => String::new(),
        0 => format!("; it differs in {named}"),
        more => format!("; it differs in {named} and {more} more"),
    };
    format!(
        "{base} with the changes of its pull requests: its tree is {found}{}{differs}",
        expected.unwrap_or_default()
    )
}

/// Pauses the queue. A user who resumes it has read the reason.
pub(super) fn pause(builder: &mut TransitionBuilder, reason: &str) {
    let switching_from = builder.queue.header.state.switching_from();
    let to =
        QueueState::Paused { by: Actor::Queue, reason: Some(reason.to_owned()), switching_from };
    advance::change_state(builder, to, &Actor::Queue, Some(reason));
}
