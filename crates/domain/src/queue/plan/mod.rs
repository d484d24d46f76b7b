//! The planner: commands and facts in, transitions out.
//!
//! Both entry points work on a [`builder::TransitionBuilder`], a copy that shares structure with
//! the previous state. They apply the input, then advance the queue until no rule applies: failures
//! are settled, tested entries land, waiting entries start.

mod advance;
mod builder;
mod checks;
mod commands;
mod composition;
mod emit;
mod empty;
mod facts;
mod host_facts;
mod land;
mod landings;
mod leave;
mod retry;
mod start;
mod targets;
mod timeouts;

use crate::time::{Span, Timestamp};

use super::state::QueueState;
use super::{Command, Decision, Entry, Fact, Queue, Refusal, Transition};

use builder::TransitionBuilder;

pub(super) mod bisect;
pub(super) mod dependencies;
pub(super) mod frozen;
pub(super) mod pretest;
pub(super) mod quota;
pub(super) mod red;
pub(super) mod window;

/// Carries out a command, or refuses it with the rule that it breaks. `at` is the time of the step.
pub fn decide(queue: &Queue, command: &Command, at: Timestamp) -> Result<Transition, Refusal> {
    let mut builder = begin(queue, at);
    commands::carry_out(&mut builder, command)?;
    Ok(concluded(builder))
}

/// Applies a fact at the time `at`. A stale or repeated fact changes nothing and is recorded as
/// [`Decision::Ignored`](super::Decision::Ignored).
pub fn absorb(queue: &Queue, fact: &Fact, at: Timestamp) -> Transition {
    let mut builder = begin(queue, at);
    facts::take_in(&mut builder, fact);
    concluded(builder)
}

fn concluded(mut builder: TransitionBuilder) -> Transition {
    advance::advance(&mut builder);
    let transition = builder.finish();
    debug_assert_eq!(super::check_invariants(&transition.queue), Vec::new());
    transition
}

/// The builder of a step. A policy that differs from that of the step before is its first decision.
fn begin(queue: &Queue, at: Timestamp) -> TransitionBuilder {
    let mut builder = TransitionBuilder::of(queue, at);
    if queue.has_other_policy() {
        let to = queue.policy().id();
        let from = std::mem::replace(&mut builder.queue.header.policy, to.clone());
        builder.decision(Decision::PolicyChanged { from, to });
    }
    builder
}

/// Returns when to absorb the next [`Fact::TimePassed`]: a run times out, its required statuses
/// count as silent, a batch has waited long enough to fill, the hold of a red target ends, a freeze
/// begins or ends, a quota is restored, an entry was not ready for too long, or the queue has another
/// policy than at its last step.
/// `None` if nothing is due, and during an outage of the host, which extends all deadlines.
pub fn next_deadline(queue: &Queue) -> Option<Timestamp> {
    if queue.header.host.unreachable_since.is_some() {
        return None;
    }
    let runs = queue.by_status.next_due();
    let batch = queue.header.batch_due.filter(|_| queue.header.state.moves());
    let red = red::in_force(queue).map(|red| red.until);
    let freeze = queue.header.freeze.due;
    let policy = queue.has_other_policy().then_some(queue.header.created_at);
    let others = batch.into_iter().chain(red).chain(freeze);
    let others =
        others.chain(quota::deadline(queue)).chain(not_ready_deadline(queue)).chain(policy);
    runs.into_iter().chain(others).min()
}

/// When the entry that has waited longest outside the line times out.
fn not_ready_deadline(queue: &Queue) -> Option<Timestamp> {
    let hours = queue.header.settings.not_ready_timeout_hours;
    if hours == 0 || queue.header.state != QueueState::Running {
        return None;
    }
    let outside = queue.line.range(super::order::OrderKey::first_outside()..);
    let outside = outside.filter_map(|key| queue.entry_of(key.pr()));
    let mut longest: Option<Timestamp> = None;
    for entry in outside.filter(|entry| may_time_out(queue, entry)) {
        longest = longest.into_iter().chain([entry.not_ready_since()]).min();
        if entry.unready_since.is_none() {
            // The others are outside for a shorter time.
            break;
        }
    }
    Some(longest?.plus(Span::hours(hours)))
}

/// Whether only the queue keeps an entry outside the line.
pub(super) fn is_ready(queue: &Queue, entry: &Entry) -> bool {
    entry.readiness(&queue.header).is_ready()
}

/// Whether an entry outside the line may time out: its author has something to do.
pub(super) fn may_time_out(queue: &Queue, entry: &Entry) -> bool {
    !entry.readiness(&queue.header).depends_on_others_only()
}

/// The run that lands next, for tests.
#[cfg(test)]
pub(super) fn first_to_land(queue: &Queue) -> Option<crate::ids::RunId> {
    land::first_to_land(queue).0
}
