//! Bisection: splits a failed batch until its culprits are tested alone.
//!
//! A batch is split in halves of the line order. The left half is tested on what the batch was
//! built on, the right half on top of the left one, so the right half's candidate is the tree of
//! the whole: if both pass, the failure of the whole was flaky. A half that fails is split again; a
//! half that passes lands once the entries ahead have landed. When a culprit leaves, the entries
//! behind it return to the line and are tested without it.

use crate::ids::{EntryId, PrNumber, RunId};

use super::super::lanes::{self, in_line};
use super::super::order::OrderKey;
use super::super::{
    Actor, Decision, Entry, EntryState, EventBatch, Part, PassReason, Queue, QueuedReason,
    RunStatus, TestFailure, TestRun,
};
use super::builder::{Because, TransitionBuilder};
use super::leave;

/// Splits the live members of a failed run.
pub(super) fn split_run(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id) else { return };
    let mut members: Vec<&Entry> = Vec::new();
    let queue = builder.queue.clone();
    members.extend(run.group.iter().filter_map(|member| queue.entry(member.entry)));
    let batch =
        members.first().and_then(|first| first.part.as_ref()).map_or(run.number, |part| part.batch);
    // A timeout is no evidence against the changes, so no result follows from it.
    let failed = matches!(
        run.status,
        RunStatus::Failed { failure: TestFailure::RequiredStatus | TestFailure::Optimization, .. }
    );
    split(builder, Some(id), batch, members, failed);
}

/// Splits these entries into two parts. `failed`: whether the whole batch is known to fail.
fn split(
    builder: &mut TransitionBuilder,
    run: Option<RunId>,
    batch: u64,
    mut members: Vec<&Entry>,
    failed: bool,
) {
    members.sort_by_key(|entry| OrderKey::of(entry));
    let (left, right) = members.split_at(members.len().div_ceil(2));
    let prs = |part: &[&Entry]| part.iter().map(|entry| entry.pr).collect::<Vec<PrNumber>>();
    let (left_prs, right_prs) = (prs(left), prs(right));
    builder.decision(Decision::Bisected { run, left: left_prs, right: right_prs });
    for (half, implied) in [(left, false), (right, failed)] {
        let number = builder.number();
        for entry in half {
            builder.change_entry(entry.id, |entry| {
                entry.part = Some(Part { batch, number, implied });
            });
            let reason = QueuedReason::BisectionRequired;
            let to = EntryState::Pending { reason, held_by: None, was_held_by: None };
            builder.move_entry(entry.id, to, Because::new(reason, &Actor::Queue));
        }
    }
}

/// Splits, without a run, a part whose failure follows: the whole batch failed and everything
/// before the part passed. A part of one entry is tested for confirmation instead. Returns whether
/// there was such a part.
pub(super) fn split_implied(builder: &mut TransitionBuilder) -> bool {
    if builder.queue.waiting.parts == 0 || !builder.queue.header.state.moves() {
        return false;
    }
    let queue = builder.queue.clone();
    let Some(members) = implied_part(&queue) else { return false };
    let batch = members.first().and_then(|entry| Some((entry.part.clone()?.batch, entry.id)));
    let Some((batch, first)) = batch else { return false };
    if members.len() > 1 {
        let run = left_of(&queue, batch, first);
        split(builder, run, batch, members, true);
    } else {
        // The whole may have failed by a flaky test: no entry fails without a run of its own.
        builder.change_entry(first, |entry| {
            if let Some(part) = &mut entry.part {
                part.implied = false;
            }
        });
    }
    true
}

/// The members of the first waiting part whose failure follows from other runs.
fn implied_part(queue: &Queue) -> Option<Vec<&Entry>> {
    let first = in_line(queue).find(|entry| {
        entry.waits_in_line()
            && entry.part.as_ref().is_some_and(|part| lanes::follows(queue, part))
            && all_before_passed(queue, entry)
    })?;
    let number = first.part.as_ref()?.number;
    let same = |entry: &&Entry| entry.part.as_ref().is_some_and(|part| part.number == number);
    Some(in_line(queue).filter(same).collect())
}

/// The members of a batch all share targets, so those before it are among the entries that it meets.
fn all_before_passed(queue: &Queue, entry: &Entry) -> bool {
    let key = OrderKey::of(entry);
    in_line(queue)
        .take_while(|other| OrderKey::of(other) < key)
        .filter(|other| lanes::meet(queue.mode(), other, entry))
        .all(|other| {
            matches!(
                other.state,
                EntryState::TestsPassed { .. } | EntryState::Pending { held_by: Some(_), .. }
            )
        })
}

/// The run of the nearest entry of the same batch before this one.
fn left_of(queue: &Queue, batch: u64, first: EntryId) -> Option<RunId> {
    let of_batch = |entry: &&Entry| entry.part.as_ref().is_some_and(|part| part.batch == batch);
    in_line(queue)
        .take_while(|entry| entry.id != first)
        .filter(of_batch)
        .filter_map(|entry| entry.state.run())
        .last()
}

/// Handles a passed run: it proves everything that its candidate contains, if the queue merges
/// optimistically or skips runs whose result follows.
pub(super) fn absolve(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id) else { return };
    let optimistic = builder.queue.header.settings.can_optimistically_merge;
    let batch = run
        .group
        .first()
        .and_then(|first| Some(builder.queue.entry(first.entry)?.part.as_ref()?.batch))
        .filter(|_| run.bisection && skips(&builder.queue));
    if !optimistic && batch.is_none() {
        return;
    }
    let queue = builder.queue.clone();
    for entry in run.ahead.iter().filter_map(|(_, pr)| queue.entry_of(*pr)) {
        let of_batch = batch.is_some() && entry.part.as_ref().map(|part| part.batch) == batch;
        let open = !matches!(entry.state, EntryState::TestsPassed { .. });
        if !open || !(optimistic || of_batch) {
            continue;
        }
        let own = entry.state.run();
        // A run that also tests entries outside this candidate continues.
        let tests_others = |own: &TestRun| {
            own.status.is_running() && own.group.iter().any(|member| !run.contains(member.pr))
        };
        if own.and_then(|own| builder.run(own)).is_some_and(|own| tests_others(&own)) {
            continue;
        }
        let reason = if optimistic { PassReason::Successor } else { PassReason::Optimization };
        let batch = own.and_then(|own| EventBatch::of(&*builder.run(own)?)).map(Box::new);
        let to = EntryState::TestsPassed { run: id, reason };
        builder.move_entry(entry.id, to, Because::new(reason, &Actor::Queue));
        if batch.is_some() {
            builder.change_entry(entry.id, |entry| entry.absolved = batch);
        }
        if let Some(own) = own {
            leave::give_up(builder, own, reason);
        }
    }
}

fn skips(queue: &Queue) -> bool {
    use super::super::OptimizationMode;
    queue.header.settings.optimization_mode == OptimizationMode::BisectionSkipRedundantTests
}

/// Dissolves the waiting parts of this entry's batch, and the parts that depend on it, because
/// their base has changed. Their members become ordinary entries of the line.
pub(super) fn forget_parts(builder: &mut TransitionBuilder, changed: &Entry) {
    if builder.queue.waiting.parts == 0 {
        return;
    }
    let queue = builder.queue.clone();
    let batch = |entry: &Entry| entry.part.as_ref().map(|part| part.batch);
    for entry in in_line(&queue).filter(|entry| entry.waits_in_line() && entry.part.is_some()) {
        if batch(entry) == batch(changed) || lanes::meet(queue.mode(), entry, changed) {
            builder.change_entry(entry.id, |entry| entry.part = None);
        }
    }
}
