//! Who depends on whom, and what could be started next.
//!
//! In SINGLE mode an entry depends on all that are ahead of it. In PARALLEL mode it depends on
//! those ahead that share an impacted target with it, and on what those depend on: lanes are not
//! stored anywhere, they follow from the targets. An entry without targets for its head touches
//! everything. All functions are pure and look at one state.

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

/// Which kinds of slots are free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    pub(super) main: bool,
    pub(super) bisection: bool,
}

/// A group that can be started, and the entries that it is to be built on.
pub(super) struct Startable<'a> {
    /// In line order.
    pub(super) group: Vec<&'a Entry>,
    /// The nearest ones that it depends on, in line order; each has a candidate.
    pub(super) on: Vec<&'a Entry>,
}

/// What comes next.
pub(super) enum Next<'a> {
    /// This group can be started now.
    Start(Startable<'a>),
    /// Nothing can; a batch that is not full may be started then.
    Wait(Option<Timestamp>),
}

/// Who cannot be started, where it stands, and because of whom.
pub(super) type Blocked = (OrderKey, PrNumber, PrNumber);

/// The first group in the line that can be started now. Adds who was found to be blocked.
///
/// Only entries that are held by a conflict are passed over: they are not part of what is built.
/// Behind an entry without a candidate nothing starts that depends on it.
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
            // What could be built on a failed run changes with what is built on it.
            Err(by) if matches!(by.state, EntryState::PendingFailure { .. }) => {}
            Err(by) => blocked.push((*key, entry.pr, by.pr)),
        }
    }
    Next::Wait(until)
}

/// Whether the result of a part's run follows from other runs, and the queue skips such runs.
pub(super) fn follows(queue: &Queue, part: &Part) -> bool {
    let mode = queue.header.settings.optimization_mode;
    part.implied && mode == OptimizationMode::BisectionSkipRedundantTests
}

/// The group that starts with this entry, or what it depends on that has no candidate to build on.
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

/// What keeps an entry, or the group that starts with it, from being built while a slot is free.
///
/// Whether its batch still waits to fill is another question: here it has waited long enough.
pub(super) fn blocker<'a>(queue: &'a Queue, entry: &'a Entry) -> Option<&'a Entry> {
    group_from(queue, entry, Timestamp::from_unix_micros(i64::MAX)).err()
}

/// What an entry depends on directly, in line order, without the members of its own group; or the
/// nearest of them that cannot be built on now.
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

/// Whether a candidate may be built on another entry's: it has one, and there is hope for it.
///
/// Parts of a split batch are built on by other parts of it only, until they have passed; a
/// failed run only where a success behind it could still absolve it.
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

/// The runs whose candidates contain that run's group, the nearest first.
pub(super) fn successors<'a>(queue: &'a Queue, run: &TestRun) -> Vec<&'a TestRun> {
    let Some(last) = run.group.last().map(|member| member.pr) else { return Vec::new() };
    // A run that nobody refers to any more is let go of at the end of the step; it must not count
    // until then, or the entry that takes its place starts only when something else happens.
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

/// While something lands, the target's head is about to change: what depends on that must be built
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

/// Everything that a candidate on these entries contains besides its own group, in line order,
/// each with the run that it is tested in: the entries, what they depend on, and so on. What
/// happens to be tested in one batch with them is left out unless they depend on it (Q6).
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
            // All that is ahead is among the entries.
            Mode::Single => {}
            Mode::Parallel => {
                open.extend(queue.before(key).filter(|it| meet(Mode::Parallel, it, entry)));
            }
        }
    }
    found.into_values().collect()
}

/// The run whose candidate contains exactly these, if one of the entries has it: only the last one
/// can, because what is last in the line is met directly.
pub(super) fn chain_of<'a>(
    queue: &'a Queue,
    on: &[&Entry],
    contained: &[(RunId, PrNumber)],
) -> Option<&'a TestRun> {
    let last = on.last().and_then(|entry| queue.run(entry.state.run()?))?;
    let live = last.prs().filter(|pr| queue.entry_of(*pr).is_some()).count();
    (live == contained.len()).then_some(last)
}

/// Whether all that a run was built on has passed or has left.
pub(super) fn all_ahead_passed(queue: &Queue, run: &TestRun) -> bool {
    let passed = |pr| {
        let state = queue.entry_of(pr).map(|entry| &entry.state);
        matches!(state, None | Some(EntryState::TestsPassed { .. }))
    };
    run.ahead.iter().all(|(_, pr)| passed(*pr))
}

/// What may still absolve a failed run.
pub(super) enum Absolver {
    /// A run behind it that is under test.
    Running,
    /// This entry, which is still to be built on it.
    Next(PrNumber),
}

/// Whether a success behind a failed run may still absolve it.
pub(super) fn may_be_absolved(queue: &Queue, failed: &TestRun) -> bool {
    absolver(queue, failed).is_some()
}

/// Whose success behind a failed run may still absolve it: one of the groups in its failure window is under test, or can still be started for that.
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
    // One more group will be built on it, as soon as it can.
    let members: Vec<&Entry> =
        failed.group.iter().filter_map(|member| queue.entry(member.entry)).collect();
    let behind = members.last().map(|last| OrderKey::of(last))?;
    let next = queue.behind(behind).find(|entry| {
        entry.waits_in_line() && members.iter().any(|member| meet(queue.mode(), member, entry))
    });
    next.filter(|next| !waits_for(queue, failed, next, &mut BTreeSet::new()))
        .map(|next| Absolver::Next(next.pr))
}

/// Whether an entry cannot be started before that failed run is settled: it depends on a failed
/// one behind it that nothing can be built on, or on an entry that does.
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

/// How many runs of each kind take a slot now: main line, bisection.
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
