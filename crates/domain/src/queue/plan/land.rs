//! Landing what was tested.

use std::collections::BTreeSet;

use crate::ids::{PrNumber, RunId, Sha, TreeId};

use super::super::{
    Actor, Change, Culprit, Decision, Effect, Entry, EntryState, Exit, FailReason, IgnoredBecause,
    Land, LandRefusal, Landing, MergeReason, Mode, PassReason, Queue, QueuedReason, RunStatus,
    TestRun, lanes,
};
use super::draft::{Because, Draft};
use super::{empty, facts, host_facts, landings, leave, start};

/// Hands a tested candidate to the host when nothing that it contains is still to be settled.
/// Returns whether it did.
pub(super) fn land(draft: &mut Draft) -> bool {
    let header = &draft.queue.header;
    if header.landing.is_some() || header.target.missing || !header.state.moves() {
        return false;
    }
    let Some(expected) = header.target.head.clone() else { return false };
    let live = |run: &TestRun| run.prs().filter(|pr| draft.queue.entry_of(*pr).is_some()).count();
    let ready = draft
        .queue
        .runs()
        .filter(|run| run.status == RunStatus::Passed && may_land(&draft.queue, run))
        .min_by_key(|run| (live(run), run.number));
    let Some(ready) = ready.map(|run| run.id) else { return false };
    adopt(draft, ready);
    let queue = draft.queue.clone();
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
    draft.queue.header.landing =
        Some(Landing { run: run.id, runs: vec![run.id], since: draft.at, exact });
    draft.effect(Effect::Land(land));
    true
}

/// The live entries that passed by this run, in line order: its group, and what it absolved.
fn passed_by<'a>(queue: &'a Queue, run: &'a TestRun) -> impl Iterator<Item = &'a Entry> {
    run.prs().filter_map(|pr| queue.entry_of(pr)).filter(
        |entry| matches!(entry.state, EntryState::TestsPassed { run: by, .. } if by == run.id),
    )
}

/// Whether everything in the candidate has landed or passed, by whichever run: this one has tested
/// all of it together. Of several runs the one that lands the fewest pull requests goes first.
fn may_land(queue: &Queue, run: &TestRun) -> bool {
    lanes::all_ahead_passed(queue, run) && passed_by(queue, run).next().is_some()
}

/// What the candidate contains lands with it, also what another run has passed. From here on it
/// counts as passed by the run that lands.
fn adopt(draft: &mut Draft, id: RunId) {
    let Some(run) = draft.run(id) else { return };
    for pr in run.prs() {
        let entry = draft.queue.entry_id(pr);
        let other = draft.queue.entry(entry).and_then(|entry| entry.state.run());
        if let Some(other) = other.filter(|other| *other != id) {
            draft.pass_on(entry, id);
            draft.left(other);
        }
    }
}

/// The candidate is on the target. Where the tested tree itself had to land, it must have; if the
/// host landed another, that is said loudly, and what was built on it starts again.
pub(super) fn landed(draft: &mut Draft, id: RunId, sha: &Sha, tree: &TreeId) {
    let Some(landing) = draft.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return draft.ignored(IgnoredBecause::NoSuchLanding);
    };
    draft.queue.header.landing = None;
    // The target did not move: everything in the candidate was there.
    let added_nothing = draft.queue.header.target.head.as_ref() == Some(sha);
    host_facts::set_target(draft, sha, tree, draft.at);
    let Some(run) = draft.run(id) else { return };
    let queue = draft.queue.clone();
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
        draft.move_entry(entry.id, EntryState::Ended(exit), because);
        leave::release_held_by(draft, entry.pr);
    }
    if candidate.is_some_and(|candidate| candidate.sha == *sha) {
        stand_on_target(draft, &run, sha);
    }
    if let Some(tested) = tested.filter(|tested| landing.exact && tested != tree) {
        draft.decision(Decision::LandedTreeDiffers {
            run: id,
            tested: tested.to_string(),
            landed: tree.to_string(),
        });
        facts::start_over(draft);
    }
}

/// What was built on a candidate that is now the target's head contains all of the target.
fn stand_on_target(draft: &mut Draft, landed: &TestRun, head: &Sha) {
    if draft.queue.mode() == Mode::Single {
        return;
    }
    let Some(last) = landed.group.last() else { return };
    let behind: Vec<RunId> = draft
        .queue
        .runs()
        .filter(|run| run.contains(last.pr) && run.root == landed.root)
        .map(|run| run.id)
        .collect();
    for run in behind {
        draft.change_run(run, |run| run.root = Some(head.clone()));
    }
}

/// Whether that pull request lands by this run.
fn passed(draft: &Draft, id: RunId, pr: PrNumber) -> bool {
    let run = draft.queue.run(id);
    run.is_some_and(|run| passed_by(&draft.queue, run).any(|entry| entry.pr == pr))
}

pub(super) fn refused(draft: &mut Draft, id: RunId, because: &LandRefusal) {
    let Some(landing) = draft.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return draft.ignored(IgnoredBecause::NoSuchLanding);
    };
    draft.queue.header.landing = None;
    let fail = |draft: &mut Draft, pr: PrNumber, reason, culprit, details: Vec<String>| {
        let entry = draft.queue.entry_id(pr);
        let exit = Exit::Failed { reason, culprit, details, evidence: None };
        leave::leave(draft, entry, exit, &Actor::Host);
    };
    match because {
        LandRefusal::HeadMoved { pr } if !passed(draft, id, *pr) => {
            // It has no part in this landing, which is tried again with a run of its own.
            draft.ignored(IgnoredBecause::NotOfRun);
            leave::requeue_run_and_behind(draft, id, QueuedReason::AnswerLost);
        }
        LandRefusal::HeadMoved { pr } => {
            fail(draft, *pr, FailReason::UpdatedAtMergeTime, Culprit::Itself, Vec::new());
        }
        LandRefusal::TargetMoved { head, .. }
            if !landing.exact && draft.queue.header.target.head.as_ref() == Some(head) =>
        {
            // The target is where it was, and holds something that shares no target with these
            // changes and yet is in their way: they are built and tested on it.
            leave::requeue_run_and_behind(draft, id, QueuedReason::TargetPushed);
        }
        LandRefusal::TargetMoved { head, tree } => {
            let was = draft.queue.header.target.head.clone();
            host_facts::set_target(draft, head, tree, draft.at);
            landings::ask(draft, was.as_ref(), head);
            facts::start_over(draft);
        }
        LandRefusal::TargetMissing => host_facts::target_missing(draft),
        LandRefusal::Refused { words } => {
            let Some(run) = draft.run(id) else { return };
            let queue = draft.queue.clone();
            let prs: BTreeSet<PrNumber> = passed_by(&queue, &run).map(|entry| entry.pr).collect();
            for pr in prs {
                let details = vec![words.clone()];
                fail(draft, pr, FailReason::MergeRefused, Culprit::Host, details);
            }
        }
    }
}
