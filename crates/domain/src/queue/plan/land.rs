//! Landing tested candidates.

use std::collections::BTreeSet;

use crate::ids::{PrNumber, RunId, Sha, TreeId};

use super::super::{
    Actor, Change, Culprit, Decision, Effect, Entry, EntryState, Exit, FailReason, IgnoredBecause,
    Land, LandRefusal, Landing, MergeReason, Mode, PassReason, Queue, QueuedReason, RunStatus,
    TestRun, lanes,
};
use super::builder::{Because, TransitionBuilder};
use super::{empty, facts, host_facts, landings, leave, start};

/// Starts the landing of a tested candidate once everything that it contains is settled. Returns
/// whether it did.
pub(super) fn land(builder: &mut TransitionBuilder) -> bool {
    let header = &builder.queue.header;
    if header.landing.is_some() || header.target.missing || !header.state.moves() {
        return false;
    }
    let Some(expected) = header.target.head.clone() else { return false };
    let live = |run: &TestRun| run.prs().filter(|pr| builder.queue.entry_of(*pr).is_some()).count();
    let ready = builder
        .queue
        .runs()
        .filter(|run| run.status == RunStatus::Passed && may_land(&builder.queue, run))
        .min_by_key(|run| (live(run), run.number));
    let Some(ready) = ready.map(|run| run.id) else { return false };
    adopt(builder, ready);
    let queue = builder.queue.clone();
    let Some(run) = queue.run(ready) else { return false };
    let Some(candidate) = run.candidate.clone() else { return false };
    let exact = match queue.mode() {
        Mode::Single => true,
        Mode::Parallel => run.root.as_ref() == Some(&expected),
    };
    let land = Land {
        run: run.id,
        target: queue.header.branch.clone(),
        expected,
        candidate,
        exact,
        changes: passed_by(&queue, run).map(start::change).collect::<Vec<Change>>(),
        method: run.method,
    };
    builder.queue.header.landing =
        Some(Landing { run: run.id, runs: vec![run.id], since: builder.at, exact });
    builder.effect(Effect::Land(land));
    true
}

/// The live entries that passed by this run, in line order: its group, and the entries that it
/// absolved.
fn passed_by<'a>(queue: &'a Queue, run: &'a TestRun) -> impl Iterator<Item = &'a Entry> {
    run.prs().filter_map(|pr| queue.entry_of(pr)).filter(
        |entry| matches!(entry.state, EntryState::TestsPassed { run: by, .. } if by == run.id),
    )
}

/// Whether everything in the candidate has landed or passed, by any run; this run has tested all of
/// it together. Of several such runs the one that lands the fewest pull requests goes first.
fn may_land(queue: &Queue, run: &TestRun) -> bool {
    lanes::all_ahead_passed(queue, run) && passed_by(queue, run).next().is_some()
}

/// Attributes every entry in the candidate to the landing run, including entries that another run
/// has passed.
fn adopt(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id) else { return };
    for pr in run.prs() {
        let entry = builder.queue.entry_id(pr);
        let other = builder.queue.entry(entry).and_then(|entry| entry.state.run());
        if let Some(other) = other.filter(|other| *other != id) {
            builder.pass_on(entry, id);
            builder.left(other);
        }
    }
}

/// Completes a landing. If the tested tree had to land and the host landed another, the planner
/// records [`Decision::LandedTreeDiffers`] and restarts the runs built on the candidate.
pub(super) fn landed(builder: &mut TransitionBuilder, id: RunId, sha: &Sha, tree: &TreeId) {
    let Some(landing) = builder.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return builder.ignored(IgnoredBecause::NoSuchLanding);
    };
    builder.queue.header.landing = None;
    // The target did not move: it already contained every change.
    let added_nothing = builder.queue.header.target.head.as_ref() == Some(sha);
    host_facts::set_target(builder, sha, tree, builder.at);
    let Some(run) = builder.run(id) else { return };
    let queue = builder.queue.clone();
    let candidate = run.candidate.clone();
    let tested = candidate.as_ref().map(|candidate| candidate.tree.clone());
    for entry in passed_by(&queue, &run) {
        let reason = match &entry.state {
            EntryState::TestsPassed { reason: PassReason::OwnHead, .. } => MergeReason::Direct,
            EntryState::TestsPassed { .. }
            | EntryState::NotReady
            | EntryState::Pending { .. }
            | EntryState::Testing { .. }
            | EntryState::PendingFailure { .. }
            | EntryState::Ended(_) => MergeReason::Queue,
        };
        let exit = if added_nothing || run.empty.contains(&entry.pr) {
            empty::exit()
        } else {
            Exit::Merged {
                reason,
                sha: Some(sha.clone()),
                tested_tree: tested.clone(),
                landed_tree: Some(tree.clone()),
            }
        };
        let because = Because::new(exit.reason(), &Actor::Queue);
        builder.move_entry(entry.id, EntryState::Ended(exit), because);
        leave::release_held_by(builder, entry.pr);
    }
    if candidate.is_some_and(|candidate| candidate.sha == *sha) {
        stand_on_target(builder, &run, sha);
    }
    if let Some(tested) = tested.filter(|tested| landing.exact && tested != tree) {
        builder.decision(Decision::LandedTreeDiffers {
            run: id,
            tested: tested.to_string(),
            landed: tree.to_string(),
        });
        facts::start_over(builder);
    }
}

/// Notes that candidates built on the landed one contain all of the target.
fn stand_on_target(builder: &mut TransitionBuilder, landed: &TestRun, head: &Sha) {
    if builder.queue.mode() == Mode::Single {
        return;
    }
    let Some(last) = landed.group.last() else { return };
    let behind: Vec<RunId> = builder
        .queue
        .runs()
        .filter(|run| run.contains(last.pr) && run.root == landed.root)
        .map(|run| run.id)
        .collect();
    for run in behind {
        builder.change_run(run, |run| run.root = Some(head.clone()));
    }
}

/// Whether this pull request lands with this run.
fn passed(builder: &TransitionBuilder, id: RunId, pr: PrNumber) -> bool {
    let run = builder.queue.run(id);
    run.is_some_and(|run| passed_by(&builder.queue, run).any(|entry| entry.pr == pr))
}

pub(super) fn refused(builder: &mut TransitionBuilder, id: RunId, because: &LandRefusal) {
    let Some(landing) = builder.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return builder.ignored(IgnoredBecause::NoSuchLanding);
    };
    builder.queue.header.landing = None;
    let fail =
        |builder: &mut TransitionBuilder, pr: PrNumber, reason, culprit, details: Vec<String>| {
            let entry = builder.queue.entry_id(pr);
            let exit = Exit::Failed { reason, culprit, details, evidence: None };
            leave::leave(builder, entry, exit, &Actor::Host);
        };
    match because {
        LandRefusal::HeadMoved { pr } if !passed(builder, id, *pr) => {
            // It does not belong to this landing; the entries are tested and landed again.
            builder.ignored(IgnoredBecause::NotOfRun);
            leave::requeue_run_and_behind(builder, id, QueuedReason::AnswerLost);
        }
        LandRefusal::HeadMoved { pr } => {
            fail(builder, *pr, FailReason::UpdatedAtMergeTime, Culprit::Itself, Vec::new());
        }
        LandRefusal::TargetMoved { head, .. }
            if !landing.exact && builder.queue.header.target.head.as_ref() == Some(head) =>
        {
            // The target did not move, but contains changes of another lane that these changes
            // cannot be applied to: they are rebuilt and tested on it.
            leave::requeue_run_and_behind(builder, id, QueuedReason::TargetPushed);
        }
        LandRefusal::TargetMoved { head, tree } => {
            let was = builder.queue.header.target.head.clone();
            host_facts::set_target(builder, head, tree, builder.at);
            landings::ask(builder, was.as_ref(), head);
            facts::start_over(builder);
        }
        LandRefusal::TargetMissing => host_facts::target_missing(builder),
        LandRefusal::Refused { words } => {
            let Some(run) = builder.run(id) else { return };
            let queue = builder.queue.clone();
            let prs: BTreeSet<PrNumber> = passed_by(&queue, &run).map(|entry| entry.pr).collect();
            for pr in prs {
                let details = vec![words.clone()];
                fail(builder, pr, FailReason::MergeRefused, Culprit::Host, details);
            }
        }
    }
}
