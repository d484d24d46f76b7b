//! Dependencies between entries, and which group starts next.
//!
//! In SINGLE mode an entry depends on all that are ahead of it. In PARALLEL mode it depends on
//! those ahead that share an impacted target with it, and on what those depend on: lanes are not
//! stored anywhere, they follow from the targets. An entry without targets for its head impacts all
//! targets.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{EntryId, PrNumber};
use crate::time::Timestamp;

use super::capacity::Capacities;
use super::lane_index::Lane;
use super::order::OrderKey;
use super::started::{Placed, Rank, united};
use super::{
    Entry, EntryState, LinePosition, Mode, Queue, Targets, TestRun, bisect, frozen, parts, pretest,
    red,
};

/// The entries in the line, in order.
pub(super) fn in_line(queue: &Queue) -> impl Iterator<Item = &Entry> {
    queue.entries_in_order().take_while(|entry| entry.place != LinePosition::Outside)
}

fn touches(entry: &Entry) -> &Targets {
    entry.applied_targets().map_or(&Targets::All, |applied| &applied.targets)
}

/// Whether the later of two entries in the line depends on the earlier one directly. Entries of a batch
/// that is bisected beside the line depend only on one another.
pub(super) fn meet(mode: Mode, one: &Entry, other: &Entry) -> bool {
    one.aside() == other.aside() && share_targets(mode, one, other)
}

/// Whether the later of two entries would depend on the earlier one if both were in the line.
pub(super) fn share_targets(mode: Mode, one: &Entry, other: &Entry) -> bool {
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

/// The planner's next start.
pub(super) enum Next<'a> {
    /// This group, in line order, can start now.
    Start(Vec<&'a Entry>),
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
    let capacities = Capacities::of(queue);
    for key in may_start(queue) {
        let Some(entry) = queue.entry_of(key.pr()) else { continue };
        if is_held(queue, entry) || bisect::waits_for(queue, entry).next().is_some() {
            continue;
        }
        let slot = match entry.part.as_ref().filter(|part| !part.pretest) {
            Some(part) => free.bisection && !parts::may_follow(queue, entry, part),
            None => free.main,
        };
        if !slot {
            continue;
        }
        match group_from(queue, entry, at) {
            Ok(Next::Start(mut group)) => {
                capacities.fit(&mut group);
                if !group.is_empty() {
                    return Next::Start(group);
                }
            }
            Ok(Next::Wait(due)) => until = until.into_iter().chain(due).min(),
            // What may be built on a failed run changes with each group that is.
            Err(by) if matches!(by.state, EntryState::PendingFailure { .. }) => {}
            // The first entry of the line is always checked again; the others wait for it.
            Err(_) if queue.mode() == Mode::Single => {}
            Err(by) => blocked.push((*key, entry.pr, by.pr)),
        }
    }
    Next::Wait(until)
}

/// The waiting entries that may be able to start: those beside the line, then those of the line, in
/// order. In SINGLE mode every entry of the line depends on those ahead of it, so only the first may.
pub(super) fn may_start(queue: &Queue) -> impl Iterator<Item = &OrderKey> {
    let most = match queue.mode() {
        Mode::Single => 1,
        Mode::Parallel => usize::MAX,
    };
    let is_aside = |key: &&OrderKey| {
        queue.started.aside > 0 && queue.entry_of(key.pr()).is_some_and(|it| it.aside().is_some())
    };
    let open = || queue.waiting.open();
    let placed = open().take_while(|key| queue.started.aside > 0 && key.keeps_its_place());
    let of_line = open().filter(move |key| !is_aside(key)).take(most);
    placed.filter(is_aside).chain(of_line)
}

/// Whether a red target or a freeze keeps an entry from being tested.
fn is_held(queue: &Queue, entry: &Entry) -> bool {
    red::holds(queue, entry) || frozen::holds_tests(queue, entry)
}

/// The group that starts with this entry, or the dependency that has no usable candidate. The capacities of
/// targets are not considered here.
pub(super) fn group_from<'a>(
    queue: &'a Queue,
    first: &'a Entry,
    at: Timestamp,
) -> Result<Next<'a>, &'a Entry> {
    if let Some(by) = obstacle(queue, first, &[]) {
        return Err(by);
    }
    let group = if let Some(part) = &first.part {
        let same = |entry: &&Entry| {
            entry.waits_in_line() && entry.part.as_ref().is_some_and(|it| it.number == part.number)
        };
        in_line(queue).filter(same).collect()
    } else {
        let (mut group, until) = super::batch::gather(queue, first, at);
        // Entries that have passed do not wait for others that would be pretested without them.
        let starts_without = first.has_passed() && pretest::separate(queue, &mut group);
        if until.is_some() && !starts_without {
            return Ok(Next::Wait(until));
        }
        group.retain(|entry| !is_held(queue, entry));
        pretest::separate(queue, &mut group);
        group
    };
    // The members of a batch in SINGLE mode are neighbors, so nothing else is ahead of the later
    // ones than of the first.
    let neighbors = queue.mode() == Mode::Single && first.part.is_none();
    if !neighbors && let Some(by) = group.iter().skip(1).find_map(|it| obstacle(queue, it, &group))
    {
        return Err(by);
    }
    if !on_what_lands(queue, &group) {
        return Ok(Next::Wait(None));
    }
    Ok(Next::Start(group))
}

/// The entry that keeps this one, or the group that starts with it, from being built while a slot
/// is free.
///
/// The wait for a batch to fill is not considered here.
pub(super) fn blocker<'a>(queue: &'a Queue, entry: &'a Entry) -> Option<&'a Entry> {
    group_from(queue, entry, Timestamp::from_unix_micros(i64::MAX)).err()
}

/// The nearest entry that this one depends on and that it cannot be built on now, leaving out the
/// members of its own group.
pub(super) fn obstacle<'a>(queue: &'a Queue, entry: &Entry, group: &[&Entry]) -> Option<&'a Entry> {
    let lane = Lane::of(queue, entry);
    queue.lane_obstacles(&lane, OrderKey::of(entry)).find(|other| {
        meet(queue.mode(), other, entry)
            && !group.iter().any(|it| it.id == other.id)
            && !can_be_built_on(queue, other, entry)
    })
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
    queue.header.settings.can_optimistically_merge
        && successors(queue, failed).take(depth).count() < depth
}

/// How many groups behind a failed run must have a result before its failure is final.
pub(super) fn failure_window(queue: &Queue) -> u32 {
    queue.header.settings.pending_failure_depth
}

/// The runs whose candidates contain this run's group, in line order.
///
/// A run without references is dropped at the end of the step and must not count until then.
/// Otherwise the entry that takes its place would start only at the next input.
pub(super) fn successors<'a>(queue: &'a Queue, run: &TestRun) -> impl Iterator<Item = &'a TestRun> {
    let last = run.group.last();
    let place = last.and_then(|last| Rank::of(queue.entry(last.entry)?.place));
    let mut batches = BTreeSet::new();
    queue.started.behind(place).filter_map(move |entry| {
        let run = queue.run(entry.state.run()?)?;
        let contains = run.group.iter().any(|member| member.entry == entry.id)
            && last.is_some_and(|last| run.contains(last.pr));
        (contains && (run.group.len() == 1 || batches.insert(run.id))).then_some(run)
    })
}

/// During a landing the target's head is about to change: a group that depends on it must be built
/// on the landing candidate, or wait.
fn on_what_lands(queue: &Queue, group: &[&Entry]) -> bool {
    let Some(landing) = &queue.header.landing else { return true };
    if group.iter().any(|member| member.aside().is_some()) {
        return false;
    }
    let mut lands = queue.started.of_run(landing.run);
    let ahead_of = |landing: &Entry, member: &Entry| OrderKey::of(landing) < OrderKey::of(member);
    match queue.mode() {
        Mode::Single => lands.any(|landing| group.iter().any(|member| ahead_of(landing, member))),
        Mode::Parallel => lands.all(|landing| {
            let mut met = group.iter().filter(|it| meet(Mode::Parallel, landing, it)).peekable();
            met.peek().is_none() || met.any(|member| ahead_of(landing, member))
        }),
    }
}

/// The entries that a candidate contains besides its own group, in line order.
pub(super) struct Contained<'a> {
    pub(super) entries: Vec<&'a Placed>,
    /// In PARALLEL mode, the ranks of the entries that a group of one depends on, if only entries
    /// with a run are among them.
    pub(super) under: Option<Vec<Rank>>,
}

/// Finds what the candidate of a group contains: the entries that the group depends on and their
/// transitive dependencies. Other members of their batches are omitted unless an entry depends on
/// them (Q6).
pub(super) fn contained<'a>(queue: &'a Queue, group: &[&'a Entry]) -> Contained<'a> {
    let in_group = |entry: &Entry| group.iter().any(|member| member.id == entry.id);
    let has_run = |placed: &&Placed| placed.entry.state.run().is_some();
    let last = group.last().and_then(|member| Rank::of(member.place));
    let ahead = queue.started.before(last);
    if queue.mode() == Mode::Single {
        let met = |placed: &&Placed| {
            !in_group(&placed.entry)
                && group.iter().any(|member| meet(Mode::Single, &placed.entry, member))
        };
        let mut entries = Vec::with_capacity(queue.started.count());
        entries.extend(ahead.map(|(_, placed)| placed).filter(has_run).filter(met));
        return Contained { entries, under: None };
    }
    let mut under = Vec::new();
    for member in group {
        under = united(&under, &dependencies(queue, member, group));
    }
    if queue.started.restarted().any(|rank| under.binary_search(rank).is_ok()) {
        return Contained { entries: through_tested(queue, group), under: None };
    }
    let mut wanted = under.iter().peekable();
    let mut is_wanted = |rank: Rank| wanted.next_if_eq(&&rank).is_some();
    let mut entries = Vec::with_capacity(under.len());
    entries.extend(ahead.filter(|(rank, _)| is_wanted(*rank)).map(|(_, placed)| placed));
    Contained { entries, under: (group.len() == 1).then_some(under) }
}

/// The ranks of the entries that this one depends on in PARALLEL mode, directly or through others,
/// in line order and without those of its group.
///
/// Walks up the line from the entry. What a found entry depends on is known from its own start and
/// is not compared again, so that usually few entries are compared.
pub(super) fn dependencies(queue: &Queue, entry: &Entry, group: &[&Entry]) -> Vec<Rank> {
    let is_direct = |other: &Entry| {
        meet(Mode::Parallel, other, entry) && !group.iter().any(|member| member.id == other.id)
    };
    let with_own = |found: &[Rank], rank: Rank, other: &Entry| match queue.started.under(rank) {
        Some(under) => united(found, under),
        None => united(found, &dependencies(queue, other, &[])),
    };
    let lane = Lane::of(queue, entry);
    if let Some(ranks) = queue.lane_ranks(&lane, OrderKey::of(entry)) {
        let mut found = Vec::new();
        for rank in ranks {
            if found.binary_search(&rank).is_err()
                && let Some(other) = queue.started.at(rank).filter(|other| is_direct(other))
            {
                found = united(&with_own(&found, rank, other), &[rank]);
            }
        }
        found.retain(|rank| queue.started.at(*rank).is_some());
        return found;
    }
    let mut found = Vec::new();
    let mut through_others: Vec<Rank> = Vec::new();
    for (rank, other) in queue.started.before(Rank::of(entry.place)).rev() {
        // Those behind this rank have left the queue.
        while through_others.pop_if(|next| *next > rank).is_some() {}
        if through_others.pop_if(|next| *next == rank).is_some() {
            found.push(rank);
        } else if is_direct(&other.entry) {
            found.push(rank);
            through_others = with_own(&through_others, rank, &other.entry);
        }
    }
    found.reverse();
    found
}

/// What a group depends on through entries that have a run: an entry that is restarted is not
/// contained, and links nothing.
fn through_tested<'a>(queue: &'a Queue, group: &[&'a Entry]) -> Vec<&'a Placed> {
    let in_group = |entry: &Entry| group.iter().any(|member| member.id == entry.id);
    let mut found = BTreeMap::new();
    let mut open: Vec<&Entry> = group.to_vec();
    while let Some(entry) = open.pop() {
        for (rank, placed) in queue.started.before(Rank::of(entry.place)) {
            let is_new = placed.entry.state.run().is_some()
                && !in_group(&placed.entry)
                && !found.contains_key(&rank)
                && meet(Mode::Parallel, &placed.entry, entry);
            if is_new {
                found.insert(rank, placed);
                open.push(&placed.entry);
            }
        }
    }
    found.into_values().collect()
}

/// The run whose candidate contains exactly these entries, if one of them has one. Only the last
/// entry can, because every other one is ahead of it.
pub(super) fn chain_of<'a>(queue: &'a Queue, contained: &[&Placed]) -> Option<&'a TestRun> {
    let nearest = contained.last()?;
    let run = queue.run(nearest.entry.state.run()?)?;
    // Both are in line order, except for parts of a split batch that others stand between.
    let has_left = |pr: PrNumber| queue.entry_of(pr).is_none();
    let mut rest = contained.iter().map(|it| it.entry.pr).peekable();
    let only_these = run.prs().all(|pr| rest.next_if_eq(&pr).is_some() || has_left(pr));
    let in_any_order = || {
        run.group.len() > 1
            && contained.iter().all(|it| run.prs().any(|pr| pr == it.entry.pr))
            && run.prs().filter(|pr| !has_left(*pr)).count() == contained.len()
    };
    ((only_these && rest.peek().is_none()) || in_any_order()).then_some(run)
}

/// Whether every pull request that the run was built on has passed or left.
pub(super) fn all_ahead_passed(queue: &Queue, run: &TestRun) -> bool {
    live_ahead(queue, run).all(|entry| matches!(entry.state, EntryState::TestsPassed { .. }))
}

/// The live entries that a run's candidate contains besides its group, nearest first.
///
/// Most entries that a run near the front was built on have left. If few stand ahead of its group,
/// these are searched instead.
pub(super) fn live_ahead<'a>(
    queue: &'a Queue,
    run: &'a TestRun,
) -> impl Iterator<Item = &'a Entry> {
    let first = run.group.first().and_then(|first| Rank::of(queue.entry(first.entry)?.place));
    let stand_ahead = || queue.started.before(first).rev().map(|(_, placed)| &*placed.entry);
    // An entry that a conflict holds may be contained and no longer stand ahead.
    let all_stand_ahead = first.is_some() && !queue.waiting.holds_any();
    let few = all_stand_ahead && stand_ahead().nth(FEW).is_none();
    let near = stand_ahead().filter(|entry| run.contains(entry.pr)).take(if few { FEW } else { 0 });
    let all = run.ahead.iter().rev().filter_map(|(_, pr)| queue.entry_of(*pr));
    near.chain(all.take(if few { 0 } else { usize::MAX }))
}

/// How many entries are searched instead of a list of entries that may have left.
const FEW: usize = 16;

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
    let mut successors: Vec<&TestRun> = successors(queue, failed).collect();
    if successors.len() > depth {
        successors.sort_by_key(|run| (run.ahead.len(), run.number));
    }
    let members: Vec<&Entry> =
        failed.group.iter().filter_map(|member| queue.entry(member.entry)).collect();
    // During a freeze an urgent one would land only with others that are held.
    let is_urgent = members.iter().any(|member| member.priority.is_urgent());
    let counts = |run: &TestRun| !is_urgent || !frozen::holds_landing(queue, run);
    if successors.iter().take(depth).any(|run| run.status.is_running() && counts(run)) {
        return Some(Absolver::Running);
    }
    let full = successors.len() >= depth;
    let can_be_built_on = failed.candidate.is_some() && !failed.bisection;
    if !settings.can_optimistically_merge || full || !can_be_built_on {
        return None;
    }
    // One more group can still be built on it.
    let behind = members.last().map(|last| OrderKey::of(last))?;
    let mut lane = Lane::of(queue, members.first()?);
    for member in &members {
        lane.join(member);
    }
    let next = queue.lane_behind(&lane, behind).find(|entry| {
        entry.waits_in_line() && members.iter().any(|member| meet(queue.mode(), member, entry))
    });
    let is_held = |next: &Entry| {
        let lands_later = is_urgent && !next.priority.is_urgent();
        frozen::holds_tests(queue, next) || (lands_later && frozen::in_force(queue).is_some())
    };
    next.filter(|next| !is_held(next))
        .filter(|next| !waits_for(queue, failed, next, &mut BTreeSet::new()))
        .map(|next| Absolver::Next(next.pr))
}

/// Whether an entry cannot start before this failed run is settled: it depends, directly or through
/// others, on a failed entry behind that run which nothing can be built on.
fn waits_for(queue: &Queue, failed: &TestRun, entry: &Entry, seen: &mut BTreeSet<EntryId>) -> bool {
    let contains_it = |run: &TestRun| failed.group.iter().any(|member| run.contains(member.pr));
    let lane = Lane::of(queue, entry);
    let before = queue.lane_before(&lane, OrderKey::of(entry));
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
pub(super) const fn running(queue: &Queue) -> (u32, u32) {
    queue.by_status.active
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
