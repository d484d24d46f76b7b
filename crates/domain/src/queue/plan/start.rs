//! Starting test runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::{BranchName, RunId, Sha};
use crate::time::{Span, Timestamp};

use super::super::lanes::{self, Contained, Free, Next};
use super::super::started::{Placed, Rank};
use super::super::{
    Actor, Ahead, BuildCandidate, Change, DirectMergeMode, Effect, Entry, EntryState, LinePosition,
    Member, Mode, Queue, Reason, RunStatus, TestRun, turns,
};
use super::builder::{Because, TransitionBuilder};
use super::{bisect, pretest};

/// The prefix of test branches.
const TEST_BRANCHES: &str = "signalbox-merge";

/// Starts a run of the first group that can start. Returns whether it did.
pub(super) fn start(builder: &mut TransitionBuilder) -> bool {
    builder.queue.header.batch_due = None;
    let free = free_slots(&builder.queue);
    if builder.queue.header.target.missing
        || !builder.queue.header.state.moves()
        || !(free.main || free.bisection)
        || builder.queue.waiting.open().next().is_none()
    {
        return false;
    }
    let Some(target_head) = builder.queue.header.target.head.clone() else { return false };
    let mut pretested = None;
    let mut blocked = Vec::new();
    let next = lanes::next_to_start(&builder.queue, builder.at, free, &mut blocked);
    let (group, until) = match next {
        Next::Start(group) => {
            pretested = pretest::wanted(&builder.queue, &group);
            (shared(&builder.queue, &group), None)
        }
        Next::Wait(until) => (Vec::new(), until),
    };
    for (key, pr, by) in blocked {
        builder.queue.waiting.block(key, pr, by);
    }
    builder.queue.header.batch_due = until;
    if group.is_empty() {
        return false;
    }
    let Some(percent) = pretested else {
        return open_run(builder, &group, &target_head).is_some();
    };
    let group = pretest::put_beside(builder, &group);
    let opened = open_run(builder, &group, &target_head);
    if let Some(run) = opened {
        pretest::started(builder, run, percent);
    }
    opened.is_some()
}

/// Entries that outlast a change of the queue.
fn shared(queue: &Queue, entries: &[&Entry]) -> Vec<Arc<Entry>> {
    entries.iter().filter_map(|entry| queue.shared_entry(entry.id).cloned()).collect()
}

/// The free slots. Bisection slots are only counted when a part of a batch waits.
fn free_slots(queue: &Queue) -> Free {
    let of_bisections = queue.header.settings.bisection_concurrency;
    let ((used, limit), (_, bisection)) = (queue.slots_of_line(), lanes::running(queue));
    let shared = of_bisections == 0;
    let free = Free { main: used < limit, bisection: bisection < of_bisections };
    let bisection = if shared { free.main } else { free.bisection };
    Free { main: free.main, bisection: bisection && queue.waiting.parts > 0 }
}

/// The base of a candidate.
struct Foundation {
    base: Sha,
    root: Option<Sha>,
    before: Vec<(RunId, Arc<Change>)>,
}

/// Chooses the commit to build on and the changes to apply to it first.
///
/// The candidate of a run ahead is the base if it contains exactly the dependencies. In PARALLEL
/// mode it must also contain all of the target, where other lanes may have landed. Otherwise the
/// base is the target's head, and every dependency is applied again.
fn foundation(queue: &Queue, contained: &[&Placed], target_head: &Sha) -> Foundation {
    let on_target = || {
        let mut before = Vec::with_capacity(contained.len());
        before.extend(
            contained
                .iter()
                .filter_map(|placed| Some((placed.entry.state.run()?, placed.change.clone()))),
        );
        Foundation { base: target_head.clone(), root: Some(target_head.clone()), before }
    };
    let Some(chain) = lanes::chain_of(queue, contained) else { return on_target() };
    let current = match queue.mode() {
        Mode::Single => true,
        Mode::Parallel => chain.root.as_ref() == Some(target_head),
    };
    match &chain.candidate {
        Some(candidate) if current => {
            Foundation { base: candidate.sha.clone(), root: chain.root.clone(), before: Vec::new() }
        }
        Some(_) | None => on_target(),
    }
}

/// A run that is about to start.
struct Opening {
    run: TestRun,
    build: BuildCandidate,
    /// What a group of one depends on, if known.
    under: Option<Vec<Rank>>,
}

fn open_run(
    builder: &mut TransitionBuilder,
    group: &[Arc<Entry>],
    target_head: &Sha,
) -> Option<RunId> {
    let number = builder.number();
    let opening = opening(&builder.queue, builder.at, number, group, target_head)?;
    let Opening { run, build, under } = opening;
    let id = run.id;
    builder.put_run(run);
    for (at, entry) in group.iter().enumerate() {
        begin(builder, entry, id, number, at);
    }
    if builder.queue.mode() == Mode::Parallel {
        record_dependencies(builder, group, under);
    }
    builder.effect(Effect::BuildCandidate(build));
    Some(id)
}

/// The run of a group, and the effect that builds its candidate.
fn opening(
    queue: &Queue,
    at: Timestamp,
    number: u64,
    group: &[Arc<Entry>],
    target_head: &Sha,
) -> Option<Opening> {
    let first = group.first()?;
    let header = &queue.header;
    let bisection = first.is_bisected();
    let id = RunId(uuid::Uuid::new_v5(&header.id.0, format!("run:{number}").as_bytes()));
    let suffix = if bisection { "-bisection" } else { "" };
    let name = format!("{TEST_BRANCHES}/pr-{}/{id}{suffix}", first.pr);
    let branch = BranchName::new(name).ok()?;
    let members: Vec<&Entry> = group.iter().map(AsRef::as_ref).collect();
    let Contained { entries: contained, under } = lanes::contained(queue, &members);
    let Foundation { base, root, before } = foundation(queue, &contained, target_head);
    let (method, minutes) = (header.settings.merge_method, header.settings.testing_timeout_minutes);
    let direct = header.settings.direct_merge_mode == DirectMergeMode::Always
        && contained.is_empty()
        && group.len() == 1;
    let build = BuildCandidate {
        run: id,
        target: header.branch.clone(),
        target_head: target_head.clone(),
        base: base.clone(),
        before,
        ahead: candidates_of(&contained),
        changes: group.iter().map(|entry| Change::of(entry)).collect(),
        method,
        branch: branch.clone(),
        direct,
    };
    let mut ahead = Vec::with_capacity(contained.len());
    ahead.extend(contained.iter().filter_map(|it| Some((it.entry.state.run()?, it.entry.pr))));
    let run = TestRun {
        id,
        number,
        bisection,
        group: group.iter().map(|entry| member(entry)).collect(),
        ahead: ahead.into(),
        base,
        root,
        direct,
        method,
        branch,
        candidate: None,
        empty: Vec::new(),
        composition: None,
        required: None,
        checks: Vec::new(),
        status: RunStatus::Building,
        started_at: at,
        ended_at: None,
        deadline: (minutes > 0).then(|| at.plus(Span::minutes(minutes))),
        built_at: None,
        silent: Vec::new(),
        read: false,
        first_check_at: None,
        causes: Vec::new(),
        retries: Vec::new(),
    };
    Some(Opening { run, build, under })
}

/// Records what the entries of a started run depend on. `under`: the ranks, if they are known.
fn record_dependencies(
    builder: &mut TransitionBuilder,
    group: &[Arc<Entry>],
    mut under: Option<Vec<Rank>>,
) {
    for entry in group {
        let Some(entry) = builder.entry(entry.id) else { continue };
        let Some(rank) = Rank::of(entry.place) else { continue };
        let found = under.take();
        let found = found.unwrap_or_else(|| lanes::dependencies(&builder.queue, &entry, &[]));
        builder.queue.started.set_under(rank, found.into());
    }
}

/// Moves an entry to TESTING and fixes its place in the line.
fn begin(builder: &mut TransitionBuilder, entry: &Entry, run: RunId, number: u64, at: usize) {
    let place = match entry.place {
        LinePosition::Waiting { .. } | LinePosition::Outside => {
            // Later members get later numbers, so a batch keeps its order.
            let number = if at == 0 { number } else { builder.number() };
            turns::start(&mut builder.queue, entry);
            LinePosition::Anchored { number }
        }
        LinePosition::Front { .. } | LinePosition::Anchored { .. } => entry.place,
    };
    let was_held_by = match &entry.state {
        EntryState::Pending { was_held_by, .. } => *was_held_by,
        EntryState::NotReady
        | EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. }
        | EntryState::Ended(_) => None,
    };
    let to = EntryState::Testing { run, was_held_by };
    let because = Because::new(Reason::Started, &Actor::Queue);
    builder.change_and_move(entry.id, |entry| entry.place = place, to, because);
    bisect::started(builder, entry, run);
}

/// The candidates of the runs that test these entries, each once.
fn candidates_of(contained: &[&Placed]) -> Vec<Ahead> {
    // Only runs that share entries are looked up.
    let mut shared = BTreeSet::new();
    let mut is_first = |run: RunId, shares: bool| {
        let none_shared = !shares && shared.is_empty();
        none_shared || shared.insert(run)
    };
    let runs = contained
        .iter()
        .filter_map(|placed| Some((placed, placed.entry.state.run()?)))
        .filter(|(placed, run)| is_first(*run, placed.shares_run));
    let mut ahead = Vec::with_capacity(contained.len());
    ahead.extend(runs.filter_map(|(it, run)| Some(Ahead { run, sha: it.candidate.clone()? })));
    ahead
}

fn member(entry: &Entry) -> Member {
    Member {
        entry: entry.id,
        pr: entry.pr,
        head: entry.pull_request.head.clone(),
        title: entry.pull_request.title.clone(),
        url: entry.pull_request.url.clone(),
    }
}
