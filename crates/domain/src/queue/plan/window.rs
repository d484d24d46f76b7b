//! The adaptive window: how many test runs the line may have at the same time. A failure that
//! restarts other runs halves it, and each merged pull request adds one.

use crate::ids::RunId;

use super::super::{Decision, PolicyView, Queue, RunStatus, Settings, TestRun};
use super::builder::TransitionBuilder;

/// The most test runs of the line at the same time: the window, or else the concurrency.
pub(in super::super) fn limit(queue: &Queue) -> u32 {
    in_force(queue).unwrap_or(queue.header.settings.concurrency)
}

/// The window, if it is smaller than the concurrency.
pub(in super::super) fn in_force(queue: &Queue) -> Option<u32> {
    let settings = &queue.header.settings;
    let window = queue.header.window.filter(|_| settings.adaptive_window)?;
    Some(window.max(settings.window_floor)).filter(|window| *window < settings.concurrency)
}

/// Handles a failed run of the line that is about to be removed or split: if runs were built on it,
/// which start again, the window is halved. The halves of a batch are built on each other and do not
/// count.
pub(super) fn failed(builder: &mut TransitionBuilder, failed: RunId) {
    let settings = &builder.queue.header.settings;
    let counts = |run: &TestRun| settings.adaptive_window && !run.bisection;
    let Some(run) = builder.run(failed).filter(|run| counts(run)) else { return };
    let is_built_on_it = |other: &TestRun| {
        let is_valid = !matches!(other.status, RunStatus::Cancelled { .. });
        is_valid && run.group.iter().any(|member| other.contains(member.pr))
    };
    if builder.queue.runs().any(is_built_on_it) {
        let queue = &builder.queue;
        let to = queue.policy().window_after_failure(&PolicyView::of(queue), &run, limit(queue));
        resize(builder, to, failed);
    }
}

/// Handles a landing: the window grows by one for each pull request that it merges.
pub(super) fn landed(builder: &mut TransitionBuilder, landed: RunId, merged: usize) {
    if in_force(&builder.queue).is_some() {
        let merged = u32::try_from(merged).unwrap_or(u32::MAX);
        let queue = &builder.queue;
        let to = queue.policy().window_after_landing(&PolicyView::of(queue), limit(queue), merged);
        resize(builder, to, landed);
    }
}

/// Forgets the window if it is as large as the concurrency, or the setting is off.
pub(super) fn end(builder: &mut TransitionBuilder) {
    if in_force(&builder.queue).is_none() {
        builder.queue.header.window = None;
    }
}

fn resize(builder: &mut TransitionBuilder, to: u32, run: RunId) {
    let Settings { window_floor, concurrency, .. } = *builder.queue.header.settings;
    let to = to.clamp(window_floor.min(concurrency), concurrency);
    let from = limit(&builder.queue);
    if from != to {
        builder.queue.header.window = Some(to);
        builder.decision(Decision::WindowResized { from, to, run });
    }
}
