//! A red target: what fails on the target branch itself fails every pull request. The pull requests
//! that meet it return to the line, and nothing is tested until the target moves or the hold ends.

use crate::ids::{PrNumber, RunId, Sha};
use crate::time::Span;

use super::super::{Decision, Entry, Queue, QueuedReason, RedTarget};
use super::builder::TransitionBuilder;
use super::leave;

/// Whether a run that meets a red target may return to the line: the target has a head for which the
/// line was not held for its time already, and no member is urgent, because urgent ones are tested.
pub(in super::super) fn may_hold<'a>(
    queue: &Queue,
    mut members: impl Iterator<Item = &'a Entry>,
) -> bool {
    let (header, red) = (&queue.header, queue.header.red.as_ref());
    let is_spent = red
        .is_some_and(|red| red.ended.is_some() && header.target.head.as_ref() == Some(&red.head));
    header.settings.red_target_hold_minutes > 0
        && !is_spent
        && members.all(|entry| !entry.priority.is_urgent())
}

/// Returns a run to the line, and holds the line. A hold that is in force keeps its end. A run from
/// before the repair of the target starts again.
pub(super) fn hold(builder: &mut TransitionBuilder, id: RunId, tests: Vec<String>) {
    end(builder);
    let Some(run) = builder.run(id) else { return };
    let Some(head) = builder.queue.header.target.head.clone() else { return };
    let repaired = builder.queue.header.red.as_ref().and_then(|red| red.ended);
    if repaired.is_none_or(|at| at <= run.started_at) {
        let minutes = builder.queue.header.settings.red_target_hold_minutes;
        let (since, until) = (builder.at, builder.at.plus(Span::minutes(minutes)));
        let new = RedTarget { head, tests: tests.clone(), since, until, ended: None };
        let known = builder.queue.header.red.take().filter(|red| red.ended.is_none());
        let red = known.unwrap_or(new);
        let until = red.until;
        builder.queue.header.red = Some(red);
        let prs: Vec<PrNumber> = run.group.iter().map(|member| member.pr).collect();
        builder.decision(Decision::HeldByRedTarget { run: id, prs, tests, until });
    }
    leave::requeue_run_and_behind(builder, id, QueuedReason::TargetRed);
}

/// Ends the hold if the target was moved by others, its time is over, or the setting is 0.
pub(super) fn end(builder: &mut TransitionBuilder) {
    let (at, header) = (builder.at, &mut builder.queue.header);
    let (is_off, head) = (header.settings.red_target_hold_minutes == 0, &header.target.head);
    let Some(red) = header.red.as_mut().filter(|red| red.ended.is_none()) else { return };
    if is_off || red.until <= at || head.as_ref() != Some(&red.head) {
        red.ended = Some(at);
    }
}

/// Handles a landing. One of an urgent pull request may be the repair; the others were tested before
/// the target was red, or do not meet it.
pub(super) fn landed(builder: &mut TransitionBuilder, is_urgent: bool, head: &Sha) {
    let at = builder.at;
    let Some(red) = &mut builder.queue.header.red else { return };
    if red.ended.is_some() {
        return;
    }
    if is_urgent {
        red.ended = Some(at);
    } else {
        red.head = head.clone();
    }
}

/// The red target that holds the line now.
pub(in super::super) fn in_force(queue: &Queue) -> Option<&RedTarget> {
    queue.header.red.as_ref().filter(|red| red.ended.is_none())
}

/// Whether a red target keeps an entry from being tested. An urgent one may be the repair.
pub(in super::super) fn holds(queue: &Queue, entry: &Entry) -> bool {
    in_force(queue).is_some() && !entry.priority.is_urgent()
}
