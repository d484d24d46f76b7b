//! Bisection: splits a failed batch until its culprits are tested alone.
//!
//! A batch is split in halves of the line order. The left half is tested on what the batch was
//! built on, the right half on top of the left one, so the right half's candidate is the tree of
//! the whole: if both pass, the failure of the whole was flaky. A half that fails is split again; a
//! half that passes lands once the entries ahead have landed. When a culprit leaves, the entries
//! behind it return to the line and are tested without it.
//!
//! A batch that is bisected aside is tested on the target alone, and nothing in the line is built
//! on it. When a culprit has left or every part has passed, its members stand behind the started
//! entries and are tested again, unless their candidate can land as it is.

use std::collections::BTreeMap;

use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::Timestamp;

use super::super::lanes::{self, in_line};
use super::super::order::OrderKey;
use super::super::parts;
use super::super::{
    Actor, Behind, BisectionMode, Decision, Entry, EntryState, EventBatch, LinePosition,
    OptimizationMode, Part, PassReason, PolicyView, Queue, QueuedReason, RunStatus, TestFailure,
    TestRun,
};
use super::builder::{Because, TransitionBuilder};
use super::{frozen, leave, pretest};

/// Whether what fails is tested beside the line, on the target alone. During a freeze the target lacks
/// what has passed, so a group would pass there and fail behind it again without end.
pub(super) fn leaves_the_line(queue: &Queue) -> bool {
    let mode = queue.header.settings.bisection_mode;
    mode == BisectionMode::Aside && frozen::in_force(queue).is_none()
}

/// Whether a run that fails while runs ahead of it are unfinished is tested beside the line now.
///
/// A run leaves the line only if one of its pull requests has not done so before, for its head: one that
/// passes alone and fails again behind the same run would do so without end. An urgent one keeps its
/// place at the front.
pub(super) fn may_reparent(queue: &Queue, run: &TestRun) -> bool {
    let members = || run.group.iter().filter_map(|member| queue.entry(member.entry));
    let is_at_front = |entry: &Entry| matches!(entry.place, LinePosition::Front { .. });
    // Nothing can be built on a failed run ahead, and that one may be at fault.
    let is_explained = || {
        lanes::live_ahead(queue, run)
            .any(|it| matches!(it.state, EntryState::PendingFailure { .. }))
    };
    !run.bisection
        && leaves_the_line(queue)
        && lanes::failure_window(queue) == 0
        && !members().all(|entry| entry.reparented)
        && !members().any(is_at_front)
        && !lanes::all_ahead_passed(queue, run)
        && !is_explained()
        && queue.policy().reparents(&PolicyView::of(queue), run)
}

/// Tests a failed run beside the line, although runs ahead of it are unfinished.
pub(super) fn reparent(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id) else { return };
    let queue = builder.queue.clone();
    let members = run.group.iter().filter_map(|member| queue.entry(member.entry));
    let members: Vec<&Entry> = members.collect();
    let prs = members.iter().map(|entry| entry.pr).collect();
    builder.decision(Decision::Reparented { run: id, prs });
    let mut ahead: Vec<PrNumber> = lanes::live_ahead(&queue, &run).map(|it| it.pr).collect();
    ahead.reverse();
    let behind = Behind { prs: ahead, since: builder.at, pretest: false, failed: false };
    if let [one] = members.as_slice() {
        put_aside(builder, &[one.id], run.number);
        test_alone(builder, one.id);
    } else {
        split_run(builder, id);
    }
    for member in members {
        builder.change_entry(member.id, |entry| {
            if let Some(part) = &mut entry.part {
                entry.reparented = true;
                let returned = part.behind.take().map(|behind| behind.prs).unwrap_or_default();
                let mut behind = behind.clone();
                behind.prs.extend(returned);
                part.behind = Some(behind);
            }
        });
    }
}

/// Handles the failure of a pull request that may lack others. It waits for these beside the line and
/// apart from its batch; what was built on it returns to the line and does not wait.
pub(super) fn failed_without(builder: &mut TransitionBuilder, id: EntryId) {
    let number = builder.number();
    // First, so that it does not return to the line with its batch.
    builder.change_entry(id, |entry| {
        let part = entry.part.take();
        let pretest = part.as_ref().is_some_and(|part| part.pretest);
        let mut behind = part.and_then(|part| part.behind);
        if let Some(behind) = &mut behind {
            behind.failed = true;
        }
        entry.part = Some(Part::beside(number, pretest, behind));
    });
    if let Some(entry) = builder.entry(id) {
        leave::requeue_all_on(builder, entry.pr, QueuedReason::PredecessorFailed);
    }
    test_alone(builder, id);
}

/// Returns a pull request to the start of its test on the target alone.
fn test_alone(builder: &mut TransitionBuilder, id: EntryId) {
    let reason = QueuedReason::FailedBehindUnfinished;
    let to = EntryState::Pending { reason, held_by: None, was_held_by: None };
    builder.move_entry(id, to, Because::new(reason, &Actor::Queue));
}

/// Whether the failure of an entry beside the line proves nothing, because its candidate may lack pull
/// requests that the failed run contained. It is tested again when these have landed or left the line.
pub(super) fn lacks_any(entry: &Entry) -> bool {
    entry.part.as_ref().is_some_and(|part| part.behind.is_some())
}

/// The pull requests of the line that an entry beside the line waits for after a failure, front first.
pub(in super::super) fn waits_for<'a>(
    queue: &'a Queue,
    entry: &'a Entry,
) -> impl Iterator<Item = PrNumber> + 'a {
    let behind = entry.part.as_ref().and_then(|part| part.behind.as_ref());
    let has_failed = behind.is_some_and(|behind| behind.failed);
    lacking(queue, entry).filter(move |_| has_failed)
}

/// The pull requests that the candidate of an entry beside the line lacks, front first.
fn lacking<'a>(queue: &'a Queue, entry: &'a Entry) -> impl Iterator<Item = PrNumber> + 'a {
    let behind = entry.part.as_ref().and_then(|part| part.behind.as_ref());
    let prs = behind.into_iter().flat_map(|it| it.prs.iter().map(|pr| (*pr, it.since)));
    let of_pretest = behind.is_some_and(|behind| behind.pretest);
    let is_in_line = move |pr: PrNumber, since: Timestamp| {
        queue.entry_of(pr).is_some_and(|other| {
            other.place != LinePosition::Outside
                && !(of_pretest && is_suspected(other))
                && other.entered_line_at.is_some_and(|entered| entered <= since)
        })
    };
    prs.filter(move |(pr, since)| is_in_line(*pr, *since)).map(|(pr, _)| pr)
}

/// Whether an entry is beside the line because it, or its batch, has failed.
pub(in super::super) fn is_suspected(entry: &Entry) -> bool {
    let has_failed = |part: &Part| part.behind.as_ref().is_some_and(|behind| behind.failed);
    entry.part.as_ref().is_some_and(|part| part.aside && (!part.pretest || has_failed(part)))
}

/// Handles the start of an entry beside the line. If its run is built on the target alone and nothing
/// is missing there any more, the result counts, and so do those of the other parts of its batch that have
/// no run yet: they are built on it or on a later target. A run that is built on another part may stand
/// on an earlier target.
pub(super) fn started(builder: &mut TransitionBuilder, entry: &Entry, run: RunId) {
    let is_on_target = builder.run(run).is_some_and(|run| run.ahead.is_empty());
    if !lacks_any(entry) || !is_on_target || lacking(&builder.queue, entry).next().is_some() {
        return;
    }
    let behind = |entry: &Entry| {
        let behind = entry.part.as_ref().and_then(|part| part.behind.as_ref());
        behind.map(|behind| (behind.prs.clone(), behind.since))
    };
    let lacked = behind(entry);
    let own = entry.id;
    let batch = entry.aside().map(|batch| members_aside(&builder.queue, batch));
    for id in batch.unwrap_or_else(|| vec![entry.id]) {
        builder.change_entry(id, |entry| {
            let is_next = entry.id == own || entry.state.run().is_none();
            if is_next
                && behind(entry) == lacked
                && let Some(part) = &mut entry.part
            {
                part.behind = None;
            }
        });
    }
}

/// Splits the live members of a failed run.
pub(super) fn split_run(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id) else { return };
    let mut members: Vec<&Entry> = Vec::new();
    let queue = builder.queue.clone();
    members.extend(run.group.iter().filter_map(|member| queue.entry(member.entry)));
    let returned = pretest::return_passed(builder, &mut members);
    // The halves of a pretest lack what the whole has lacked.
    let lacks_more = |it: &&Entry| lacks_any(it) && !it.is_pretested();
    let certain = returned.is_none()
        && lanes::all_ahead_passed(&queue, &run)
        && !members.iter().any(lacks_more);
    let batch =
        members.first().and_then(|first| first.part.as_ref()).map_or(run.number, |part| part.batch);
    if leaves_the_line(&builder.queue) && members.iter().all(|member| member.part.is_none()) {
        let ids: Vec<EntryId> = members.iter().map(|member| member.id).collect();
        put_aside(builder, &ids, batch);
    }
    if let Some(returned) = returned {
        for member in &members {
            builder.change_entry(member.id, |entry| {
                if let Some(part) = &mut entry.part {
                    part.behind = Some(returned.clone());
                }
            });
        }
        if let [one] = members.as_slice() {
            return test_alone(builder, one.id);
        }
    }
    // A timeout is no evidence against the changes, so no result follows from it.
    let failed = matches!(
        run.status,
        RunStatus::Failed { failure: TestFailure::RequiredStatus | TestFailure::Optimization, .. }
    );
    split(builder, Some(id), batch, members, failed && certain);
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
                let aside = entry.aside().is_some();
                let mut behind = entry.part.take().and_then(|part| part.behind);
                if let Some(behind) = &mut behind {
                    // One that probably fails is tested when that shows that it is at fault.
                    behind.failed |= behind.pretest && left.len() == 1 && half.len() == 1;
                }
                entry.part = Some(Part { batch, number, implied, aside, pretest: false, behind });
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
            && entry.part.as_ref().is_some_and(|part| parts::follows(queue, part))
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
        // During a freeze it would land only with others that are held.
        let is_held = entry.priority.is_urgent() && frozen::holds_landing(&queue, &run);
        if !open || is_held || !(optimistic || of_batch) {
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

/// Whether the queue skips runs of a bisection whose result follows from other runs.
pub(in super::super) fn skips(queue: &Queue) -> bool {
    queue.header.settings.optimization_mode == OptimizationMode::BisectionSkipRedundantTests
}

/// Dissolves the waiting parts of this entry's batch, and the parts that depend on it, because
/// their base has changed. Their members become ordinary entries of the line.
pub(super) fn forget_parts(builder: &mut TransitionBuilder, changed: &Entry) {
    if let Some(batch) = changed.aside() {
        return dissolve(builder, batch, QueuedReason::BisectionRequired);
    }
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

/// Takes the members of a failed batch out of the line. What was built on them starts again without
/// them, and so does what conflicts with them.
fn put_aside(builder: &mut TransitionBuilder, members: &[EntryId], batch: u64) {
    let reason = QueuedReason::PredecessorFailed;
    for id in members {
        if let Some(entry) = builder.entry(*id) {
            let pr = entry.pr;
            leave::requeue_all_on(builder, pr, reason);
            leave::release_held_by(builder, pr);
        }
    }
    for id in members {
        let number = builder.number();
        builder.change_entry(*id, |entry| {
            entry.place = LinePosition::Anchored { number };
            entry.part = Some(Part::beside(batch, false, None));
        });
    }
}

/// The members of a batch beside the line, in order.
fn members_aside(queue: &Queue, batch: u64) -> Vec<EntryId> {
    let all = queue.started.before(None).map(|(_, placed)| &placed.entry);
    all.filter(|entry| entry.aside() == Some(batch)).map(|entry| entry.id).collect()
}

/// Returns the members of a batch beside the line to the line, behind the started entries.
pub(super) fn dissolve(builder: &mut TransitionBuilder, batch: u64, reason: QueuedReason) {
    let mut members = members_aside(&builder.queue, batch);
    let part = |id: &EntryId| builder.queue.entry(*id).and_then(|it| it.part.as_ref());
    let is_alone = members.iter().filter_map(part).all(Part::is_alone);
    let landing = can_land(&builder.queue, &members);
    for id in members.drain(..landing) {
        builder.change_entry(id, |entry| entry.part = None);
    }
    let at = builder.at;
    for id in &members {
        let number = builder.number();
        builder.change_entry(*id, |entry| {
            entry.part = None;
            entry.returned_at = Some(at);
            if let LinePosition::Anchored { .. } = entry.place {
                entry.place = LinePosition::Anchored { number };
            }
        });
    }
    for id in members {
        let state = builder.entry(id).map(|entry| entry.state.clone());
        let reason = match state {
            Some(EntryState::TestsPassed { .. }) if is_alone => QueuedReason::PassedAlone,
            Some(EntryState::TestsPassed { .. }) => QueuedReason::BisectionTestRunPassed,
            _ if is_alone => QueuedReason::ReturnedToLine,
            _ => reason,
        };
        if let Some(run) = state.and_then(|state| state.run()) {
            leave::requeue_run(builder, run, reason, &Actor::Queue);
        }
    }
}

/// How many of these members, from the first, can land as they were tested: they have passed, the
/// target is the one that they were tested on, and nothing in the line was started without them.
fn can_land(queue: &Queue, members: &[EntryId]) -> usize {
    let head = queue.header.target.head.as_ref();
    let is_current = |entry: &Entry| {
        let run = entry.state.run().and_then(|run| queue.run(run));
        matches!(entry.state, EntryState::TestsPassed { .. })
            && run.is_some_and(|run| run.root.as_ref() == head)
    };
    let entries: Vec<&Entry> = members.iter().filter_map(|id| queue.entry(*id)).collect();
    let others = queue.started.before(None).map(|(_, placed)| &*placed.entry);
    let mut others = others.filter(|other| other.aside().is_none());
    let meets =
        |other: &Entry| entries.iter().any(|it| lanes::share_targets(queue.mode(), other, it));
    if others.any(meets) {
        return 0;
    }
    entries.iter().take_while(|entry| is_current(entry)).count()
}

/// Returns the batch of an entry to the line, if it is beside it.
pub(super) fn leave_aside(builder: &mut TransitionBuilder, id: EntryId) {
    if let Some(batch) = builder.entry(id).and_then(|entry| entry.aside()) {
        dissolve(builder, batch, QueuedReason::BisectionRequired);
    }
}

/// Returns a batch to the line whose parts have all passed. Returns whether there was one.
pub(super) fn rejoin(builder: &mut TransitionBuilder) -> bool {
    if builder.queue.started.aside == 0 {
        return false;
    }
    let mut open: BTreeMap<u64, bool> = BTreeMap::new();
    for (_, placed) in builder.queue.started.before(None) {
        if let Some(batch) = placed.entry.aside() {
            let passed = matches!(placed.entry.state, EntryState::TestsPassed { .. });
            *open.entry(batch).or_default() |= !passed && !placed.entry.is_held();
        }
    }
    let Some((batch, _)) = open.into_iter().find(|(_, open)| !open) else { return false };
    dissolve(builder, batch, QueuedReason::BisectionTestRunPassed);
    true
}
