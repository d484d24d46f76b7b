//! Starting test runs.

use std::collections::BTreeSet;

use crate::ids::{BranchName, PrNumber, RunId, Sha};
use crate::time::Span;

use super::super::lanes::{self, Free, Next, Startable};
use super::super::{
    Actor, Ahead, BuildCandidate, Change, DirectMergeMode, Effect, Entry, EntryState, LinePosition,
    Member, Mode, Queue, Reason, RunStatus, TestRun,
};
use super::builder::{Because, TransitionBuilder};

/// The prefix of test branches.
const TEST_BRANCHES: &str = "signalbox-merge";

/// Starts a run of the first group that can start. Returns whether it did.
pub(super) fn start(builder: &mut TransitionBuilder) -> bool {
    builder.queue.header.batch_due = None;
    let Some(target_head) = builder.queue.header.target.head.clone() else { return false };
    let free = free_slots(&builder.queue);
    if builder.queue.header.target.missing
        || !builder.queue.header.state.moves()
        || !(free.main || free.bisection)
    {
        return false;
    }
    // The clone is cheap: it shares structure. The group borrows from it while the builder changes.
    let queue = builder.queue.clone();
    let mut blocked = Vec::new();
    let next = lanes::next_to_start(&queue, builder.at, free, &mut blocked);
    for (key, pr, by) in blocked {
        builder.queue.waiting.block(key, pr, by);
    }
    match next {
        Next::Start(startable) => open_run(builder, &queue, &startable, &target_head),
        Next::Wait(until) => {
            builder.queue.header.batch_due = until;
            false
        }
    }
}

/// The free slots. Bisection slots are only counted when a part of a batch waits.
fn free_slots(queue: &Queue) -> Free {
    let settings = &queue.header.settings;
    let (main, bisection) = lanes::running(queue);
    let shared = settings.bisection_concurrency == 0;
    let free = Free {
        main: main + if shared { bisection } else { 0 } < settings.concurrency,
        bisection: bisection < settings.bisection_concurrency,
    };
    let bisection = if shared { free.main } else { free.bisection };
    Free { main: free.main, bisection: bisection && queue.waiting.parts > 0 }
}

/// The base of a candidate.
struct Foundation {
    base: Sha,
    root: Option<Sha>,
    before: Vec<(RunId, Change)>,
}

/// Chooses the commit to build on and the changes to apply to it first.
///
/// The candidate of a run ahead is the base if it contains exactly the dependencies. In PARALLEL
/// mode it must also contain all of the target, where other lanes may have landed. Otherwise the
/// base is the target's head, and every dependency is applied again.
fn foundation(
    queue: &Queue,
    on: &[&Entry],
    contained: &[(RunId, PrNumber)],
    target_head: &Sha,
) -> Foundation {
    let on_target = || Foundation {
        base: target_head.clone(),
        root: Some(target_head.clone()),
        before: contained
            .iter()
            .filter_map(|(run, pr)| Some((*run, change(queue.entry_of(*pr)?))))
            .collect(),
    };
    let Some(chain) = lanes::chain_of(queue, on, contained) else { return on_target() };
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

fn open_run(
    builder: &mut TransitionBuilder,
    queue: &Queue,
    startable: &Startable<'_>,
    target_head: &Sha,
) -> bool {
    let Some(first) = startable.group.first() else { return false };
    let number = builder.number();
    let header = &queue.header;
    let bisection = first.part.is_some();
    let id = RunId(uuid::Uuid::new_v5(&header.id.0, format!("run:{number}").as_bytes()));
    let suffix = if bisection { "-bisection" } else { "" };
    let name = format!("{TEST_BRANCHES}/pr-{}/{id}{suffix}", first.pr);
    let Ok(branch) = BranchName::new(name) else { return false };
    let contained = lanes::contained(queue, &startable.on);
    let Foundation { base, root, before } =
        foundation(queue, &startable.on, &contained, target_head);
    let (method, minutes) = (header.settings.merge_method, header.settings.testing_timeout_minutes);
    let direct = header.settings.direct_merge_mode == DirectMergeMode::Always
        && contained.is_empty()
        && startable.group.len() == 1;
    let build = BuildCandidate {
        run: id,
        target: header.branch.clone(),
        target_head: target_head.clone(),
        base: base.clone(),
        before,
        ahead: candidates_of(queue, &contained),
        changes: startable.group.iter().map(|entry| change(entry)).collect(),
        method,
        branch: branch.clone(),
        direct,
    };
    builder.put_run(TestRun {
        id,
        number,
        bisection,
        group: startable.group.iter().map(|entry| member(entry)).collect(),
        ahead: contained,
        base,
        root,
        direct,
        method,
        branch,
        candidate: None,
        empty: Vec::new(),
        required: None,
        checks: Vec::new(),
        status: RunStatus::Building,
        started_at: builder.at,
        ended_at: None,
        deadline: (minutes > 0).then(|| builder.at.plus(Span::minutes(minutes))),
        built_at: None,
        silent: Vec::new(),
    });
    for (at, entry) in startable.group.iter().enumerate() {
        begin(builder, entry, id, number, at);
    }
    builder.effect(Effect::BuildCandidate(build));
    true
}

/// Moves an entry to TESTING and fixes its place in the line.
fn begin(builder: &mut TransitionBuilder, entry: &Entry, run: RunId, number: u64, at: usize) {
    if let LinePosition::Waiting { .. } | LinePosition::Outside = entry.place {
        // Later members get later numbers, so a batch keeps its order.
        let number = if at == 0 { number } else { builder.number() };
        builder.change_entry(entry.id, |entry| entry.place = LinePosition::Anchored { number });
    }
    let was_held_by = match &entry.state {
        EntryState::Pending { was_held_by, .. } => *was_held_by,
        EntryState::NotReady
        | EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. }
        | EntryState::Ended(_) => None,
    };
    let to = EntryState::Testing { run, was_held_by };
    builder.move_entry(entry.id, to, Because::new(Reason::Started, &Actor::Queue));
}

/// The candidates of the runs that test these pull requests, each once.
fn candidates_of(queue: &Queue, contained: &[(RunId, PrNumber)]) -> Vec<Ahead> {
    let mut seen = BTreeSet::new();
    contained
        .iter()
        .filter(|(run, _)| seen.insert(*run))
        .filter_map(|(run, _)| {
            let sha = queue.run(*run)?.candidate.as_ref()?.sha.clone();
            Some(Ahead { run: *run, sha })
        })
        .collect()
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

/// A pull request's changes, as sent to the host.
pub(super) fn change(entry: &Entry) -> Change {
    Change {
        pr: entry.pr,
        head: entry.pull_request.head.clone(),
        title: entry.pull_request.commit_title().to_owned(),
        body: entry.pull_request.body.clone(),
        author: entry.pull_request.author.clone(),
    }
}
