//! A red target: what fails on the target branch itself fails every pull request. The pull requests
//! that meet it return to the line, and nothing is tested until the target moves or the hold ends.

use crate::ids::{PrNumber, RunId};
use crate::time::Span;

use super::super::{Decision, Entry, Queue, QueuedReason, RedTarget};
use super::builder::TransitionBuilder;
use super::leave;

/// Returns a run to the line. A hold that is in force keeps its end.
pub(super) fn hold(builder: &mut TransitionBuilder, id: RunId, tests: Vec<String>) {
    end(builder);
    let Some(run) = builder.run(id) else { return };
    let Some(head) = builder.queue.header.target.head.clone() else { return };
    for member in run.group.iter() {
        builder.change_entry(member.entry, |entry| entry.retries.held = true);
    }
    let minutes = builder.queue.header.settings.red_target_hold_minutes;
    let (since, until) = (builder.at, builder.at.plus(Span::minutes(minutes)));
    let red = builder.queue.header.red.get_or_insert_with(|| RedTarget {
        head,
        tests: tests.clone(),
        since,
        until,
    });
    let until = red.until;
    let prs: Vec<PrNumber> = run.group.iter().map(|member| member.pr).collect();
    builder.decision(Decision::HeldByRedTarget { run: id, prs, tests, until });
    leave::requeue_run_and_behind(builder, id, QueuedReason::TargetRed);
}

/// Ends the hold if the target has moved, its time is over, or the setting is 0.
pub(super) fn end(builder: &mut TransitionBuilder) {
    let header = &mut builder.queue.header;
    let is_off = header.settings.red_target_hold_minutes == 0;
    let is_over = |red: &RedTarget| {
        is_off || red.until <= builder.at || header.target.head.as_ref() != Some(&red.head)
    };
    if header.red.as_ref().is_some_and(is_over) {
        header.red = None;
    }
}

/// Whether a red target keeps an entry from being tested. An urgent one may be the repair.
pub(crate) fn holds(queue: &Queue, entry: &Entry) -> bool {
    queue.header.red.is_some() && !entry.priority.is_urgent()
}
