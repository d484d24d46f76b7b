//! Dependencies between entries, and which group starts next.
//!
//! In SINGLE mode an entry depends on all that are ahead of it. In PARALLEL mode it depends on
//! those ahead that share an impacted target with it, and on what those depend on: lanes are not
//! stored anywhere, they follow from the targets. An entry without targets for its head impacts all
//! targets.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::{Span, Timestamp};

use super::order::OrderKey;
use super::{
    Entry, EntryState, LinePosition, Mode, OptimizationMode, Part, Queue, Targets, TestRun,
};

/// The entries in the line, in order.
pub(super) fn in_line(queue: &Queue) -> impl Iterator<Item = &Entry> {
    queue.entries_in_order().take_while(|entry| entry.place != LinePosition::Outside)
}

fn touches(entry: &Entry) -> &Targets {
    let held = entry.targets.as_deref().filter(|it| it.hold_for(&entry.pull_request.head));
    held.map_or(&Targets::All, |reported| &reported.targets)
}

/// Whether the later of two entries in the line depends on the earlier one directly.
pub(super) fn meet(mode: Mode, one: &Entry, other: &Entry) -> bool {
    match mode {
        Mode::Single => true,
        Mode::Parallel => touches(one).meets(touches(other)),
    }
}

/// The kinds of slots that are free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    pub(super) main: bool,
    pub(super) bisection: bool,
}

/// A group that can start, and the entries that its candidate is built on.
pub(super) struct Startable<'a> {
    /// The entries to test together, in line order.
    pub(super) group: Vec<&'a Entry>,
    /// The nearest entries that the group depends on, in line order; each has a candidate.
    pub(super) on: Vec<&'a Entry>,
}

/// The planner's next start.
pub(super) enum Next<'a> {
    /// This group can start now.
    Start(Startable<'a>),
    /// No group can start; a filling batch may start at this time.
    Wait(Option<Timestamp>),
}

/// A blocked entry: its position, its pull request, and the pull request that blocks it.
pub(super) type Blocked = (OrderKey, PrNumber, PrNumber);

/// Finds the first group in the line that can start now, and adds the blocked entries that it
/// passed.
///
/// Only entries that are held by a conflict are skipped: candidates do not contain them. An entry
/// that depends on one without a candidate does not start.
pub(super) fn next_to_start<'a>(
    queue: &'a Queue,
    at: Timestamp,
    free: Free,
    blocked: &mut Vec<Blocked>,
) -> Next<'a> {
    let mut until: Option<Timestamp> = None;
    for key in queue.waiting.open() {
        let Some(entry) = queue.entry(key.entry()) else { continue };
        let slot = match &entry.part {
            Some(part) => free.bisection && !follows(queue, part),
            None => free.main,
        };
        if !slot {
            continue;
        }
        match group_from(queue, entry, at) {
            Ok(Next::Start(startable)) => return Next::Start(startable),
            Ok(Next::Wait(due)) => until = until.into_iter().chain(due).min(),
            // What may be built on a failed run changes with each group that is.
            Err(by) if matches!(by.state, EntryState::PendingFailure { .. }) => {}
            Err(by) => blocked.push((*key, entry.pr, by.pr)),
        }
    }
    Next::Wait(until)
}

/// Whether the result of a part follows from other runs, and the queue skips such runs.
pub(super) fn follows(queue: &Queue, part: &Part) -> bool {
    let mode = queue.header.settings.optimization_mode;
    part.implied && mode == OptimizationMode::BisectionSkipRedundantTests
}

/// The group that starts with this entry, or the dependency that has no usable candidate.
fn group_from<'a>(
    queue: &'a Queue,
    first: &'a Entry,
    at: Timestamp,
) -> Result<Next<'a>, &'a Entry> {
    let mut on = to_build_on(queue, first, &[])?;
    let group = if let Some(part) = &first.part {
        let same = |entry: &&Entry| {
            entry.waits_in_line() && entry.part.as_ref().is_some_and(|it| it.number == part.number)
        };
        in_line(queue).filter(same).collect()
    } else {
        let (group, until) = super::batch::gather(queue, first, at);
        if until.is_some() {
            return Ok(Next::Wait(until));
        }
        group
    };
    for member in group.iter().skip(1) {
        for entry in to_build_on(queue, member, &group)? {
            if !on.iter().any(|it| it.id == entry.id) {
                on.push(entry);
            }
        }
    }
    on.sort_by_key(|entry| OrderKey::of(entry));
    if !on_what_lands(queue, &group, &on) {
        return Ok(Next::Wait(None));
    }
    Ok(Next::Start(Startable { group, on }))
}

/// The entry that keeps this one, or the group that starts with it, from being built while a slot
/// is free.
///
/// The wait for a batch to fill is not considered here.
pub(super) fn blocker<'a>(queue: &'a Queue, entry: &'a Entry) -> Option<&'a Entry> {
    group_from(queue, entry, Timestamp::from_unix_micros(i64::MAX)).err()
}

/// The direct dependencies of an entry, in line order, without the members of its own group; or the
/// nearest one that cannot be built on now.
pub(super) fn to_build_on<'a>(
    queue: &'a Queue,
    entry: &Entry,
    group: &[&Entry],
) -> Result<Vec<&'a Entry>, &'a Entry> {
    let mut on = Vec::new();
    for other in queue.before(OrderKey::of(entry)) {
        if meet(queue.mode(), other, entry) && !group.iter().any(|it| it.id == other.id) {
            if !can_be_built_on(queue, other, entry) {
                return Err(other);
            }
            on.push(other);
        }
    }
    on.reverse();
    Ok(on)
}

/// Whether a candidate may be built on another entry's candidate: it exists and may still pass.
///
/// Until it has passed, a part of a split batch supports only other parts of that batch. A failed
/// run supports candidates only while a success behind it could still absolve it.
fn can_be_built_on(queue: &Queue, other: &Entry, by: &Entry) -> bool {
    let Some(run) = other.state.run().and_then(|run| queue.run(run)) else { return false };
    let same_batch = || {
        let batch = |entry: &Entry| entry.part.as_ref().map(|part| part.batch);
        batch(other).is_some() && batch(other) == batch(by)
    };
    run.candidate.is_some()
        && match &other.state {
            EntryState::TestsPassed { .. } => true,
            EntryState::Testing { .. } => !run.bisection || same_batch(),
            EntryState::PendingFailure { .. } => {
                (!run.bisection || same_batch()) && has_room_behind(queue, run)
            }
            EntryState::NotReady | EntryState::Pending { .. } | EntryState::Ended(_) => false,
        }
}

/// Whether one more group behind a failed run could absolve it.
fn has_room_behind(queue: &Queue, failed: &TestRun) -> bool {
    let depth = usize::try_from(failure_window(queue)).unwrap_or(usize::MAX);
    queue.header.settings.can_optimistically_merge && successors(queue, failed).len() < depth
}

/// How many groups behind a failed run must have a result before its failure is final.
pub(super) const fn failure_window(queue: &Queue) -> u32 {
    queue.header.settings.pending_failure_depth
}

/// The runs whose candidates contain this run's group, nearest first.
pub(super) fn successors<'a>(queue: &'a Queue, run: &TestRun) -> Vec<&'a TestRun> {
    let Some(last) = run.group.last().map(|member| member.pr) else { return Vec::new() };
    // A run without references is dropped at the end of the step and must not count until then.
    // Otherwise the entry that takes its place would start only at the next input.
    let matters = |other: &TestRun| {
        let refers = |entry: &Entry| entry.state.run() == Some(other.id);
        other.status.is_running()
            || other.group.iter().any(|it| queue.entry(it.entry).is_some_and(refers))
    };
    let mut behind: Vec<&TestRun> =
        queue.runs().filter(|other| other.contains(last) && matters(other)).collect();
    behind.sort_by_key(|other| (other.ahead.len(), other.number));
    behind
}

/// During a landing the target's head is about to change: a group that depends on it must be built
/// on the landing candidate, or wait.
fn on_what_lands(queue: &Queue, group: &[&Entry], on: &[&Entry]) -> bool {
    let Some(landing) = &queue.header.landing else { return true };
    let lands = |entry: &Entry| entry.state.run() == Some(landing.run);
    match (queue.mode(), queue.run(landing.run)) {
        (Mode::Single, _) => on.iter().any(|entry| lands(entry)),
        (Mode::Parallel, None) => true,
        (Mode::Parallel, Some(run)) => {
            run.prs().filter_map(|pr| queue.entry_of(pr)).filter(|entry| lands(entry)).all(
                |landing| {
                    let meets = |entry: &&Entry| meet(Mode::Parallel, landing, entry);
                    on.iter().any(|entry| entry.id == landing.id) || !group.iter().any(meets)
                },
            )
        }
    }
}

/// The pull requests that a candidate on these entries contains besides its own group, in line
/// order, each with the run that tests it: the entries and their transitive dependencies. Other
/// members of their batches are omitted unless an entry depends on them (Q6).
pub(super) fn contained(queue: &Queue, on: &[&Entry]) -> Vec<(RunId, PrNumber)> {
    let mut found = BTreeMap::new();
    let mut open: Vec<&Entry> = on.to_vec();
    while let Some(entry) = open.pop() {
        let key = OrderKey::of(entry);
        let Some(run) = entry.state.run() else { continue };
        if found.insert(key, (run, entry.pr)).is_some() {
            continue;
        }
        match queue.mode() {
            // In SINGLE mode the entries are all that is ahead.
            Mode::Single => {}
            Mode::Parallel => {
                open.extend(queue.before(key).filter(|it| meet(Mode::Parallel, it, entry)));
            }
        }
    }
    found.into_values().collect()
}

/// The run whose candidate contains exactly these pull requests, if an entry has one. Only the last
/// entry can, because every other one is ahead of it.
pub(super) fn chain_of<'a>(
    queue: &'a Queue,
    on: &[&Entry],
    contained: &[(RunId, PrNumber)],
) -> Option<&'a TestRun> {
    let last = on.last().and_then(|entry| queue.run(entry.state.run()?))?;
    let live = last.prs().filter(|pr| queue.entry_of(*pr).is_some()).count();
    (live == contained.len()).then_some(last)
}

/// Whether every pull request that the run was built on has passed or left.
pub(super) fn all_ahead_passed(queue: &Queue, run: &TestRun) -> bool {
    let passed = |pr| {
        let state = queue.entry_of(pr).map(|entry| &entry.state);
        matches!(state, None | Some(EntryState::TestsPassed { .. }))
    };
    run.ahead.iter().all(|(_, pr)| passed(*pr))
}

/// What can still absolve a failed run.
pub(super) enum Absolver {
    /// An active run behind it.
    Running,
    /// This entry, whose candidate will be built on it.
    Next(PrNumber),
}

/// Whether a success behind a failed run may still absolve it.
pub(super) fn may_be_absolved(queue: &Queue, failed: &TestRun) -> bool {
    absolver(queue, failed).is_some()
}

/// The successor whose success may still absolve a failed run: a group in its failure window that
/// is under test or can still start.
pub(super) fn absolver(queue: &Queue, failed: &TestRun) -> Option<Absolver> {
    let settings = &queue.header.settings;
    let depth = usize::try_from(failure_window(queue)).unwrap_or(usize::MAX);
    if depth == 0 {
        return None;
    }
    let successors = successors(queue, failed);
    if successors.iter().take(depth).any(|run| run.status.is_running()) {
        return Some(Absolver::Running);
    }
    let full = successors.len() >= depth;
    let can_be_built_on = failed.candidate.is_some() && !failed.bisection;
    if !settings.can_optimistically_merge || full || !can_be_built_on {
        return None;
    }
    // One more group can still be built on it.
    let members: Vec<&Entry> =
        failed.group.iter().filter_map(|member| queue.entry(member.entry)).collect();
    let behind = members.last().map(|last| OrderKey::of(last))?;
    let next = queue.behind(behind).find(|entry| {
        entry.waits_in_line() && members.iter().any(|member| meet(queue.mode(), member, entry))
    });
    next.filter(|next| !waits_for(queue, failed, next, &mut BTreeSet::new()))
        .map(|next| Absolver::Next(next.pr))
}

/// Whether an entry cannot start before this failed run is settled: it depends, directly or through
/// others, on a failed entry behind that run which nothing can be built on.
fn waits_for(queue: &Queue, failed: &TestRun, entry: &Entry, seen: &mut BTreeSet<EntryId>) -> bool {
    let contains_it = |run: &TestRun| failed.group.iter().any(|member| run.contains(member.pr));
    let before = queue.before(OrderKey::of(entry));
    before.filter(|other| meet(queue.mode(), other, entry)).any(|other| match &other.state {
        EntryState::PendingFailure { run, .. } => {
            queue.run(*run).is_some_and(contains_it) && !can_be_built_on(queue, other, entry)
        }
        EntryState::Pending { .. } => {
            seen.insert(other.id) && waits_for(queue, failed, other, seen)
        }
        EntryState::NotReady
        | EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::Ended(_) => false,
    })
}

/// The occupied slots: by runs of the main line, and by runs of bisections.
pub(super) fn running(queue: &Queue) -> (u32, u32) {
    queue.runs().filter(|run| run.status.is_running()).fold((0, 0), |(main, bisection), run| {
        if run.bisection { (main, bisection + 1) } else { (main + 1, bisection) }
    })
}

/// When an entry has waited long enough for its batch to fill.
pub(super) fn batch_due(queue: &Queue, entry: &Entry) -> Option<Timestamp> {
    let minutes = queue.header.settings.batching_max_wait_time_minutes;
    match entry.place {
        LinePosition::Waiting { since, .. } if queue.header.state.lets_in() => {
            Some(since.plus(Span::minutes(minutes)))
        }
        LinePosition::Waiting { .. }
        | LinePosition::Anchored { .. }
        | LinePosition::Front { .. }
        | LinePosition::Outside => None,
    }
}
