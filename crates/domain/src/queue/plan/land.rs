//! Landing what was tested.

use std::collections::BTreeSet;

use crate::ids::{PrNumber, RunId, Sha, TreeId};

use super::super::{
    Actor, Change, Culprit, Decision, Effect, Entry, EntryState, Exit, FailReason, IgnoredBecause,
    Land, LandRefusal, Landing, MergeReason, Mode, PassReason, Queue, QueuedReason, RunStatus,
    TestRun,
};
use super::draft::{Because, Draft};
use super::{facts, host_facts, leave, start};

/// Hands a tested candidate to the host when nothing that it contains is still to be settled.
/// Returns whether it did.
pub(super) fn land(draft: &mut Draft) -> bool {
    let header = &draft.queue.header;
    if header.landing.is_some() || header.target.missing || !header.state.moves() {
        return false;
    }
    let Some(expected) = header.target.head.clone() else { return false };
    let ready = draft
        .queue
        .runs()
        .filter(|run| run.status == RunStatus::Passed && may_land(&draft.queue, run))
        .min_by_key(|run| run.number);
    let Some(ready) = ready.map(|run| run.id) else { return false };
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

/// Whether everything in the candidate has landed or passed by this run.
fn may_land(queue: &Queue, run: &TestRun) -> bool {
    let settled = |pr| match queue.entry_of(pr).map(|entry| &entry.state) {
        None => true,
        Some(EntryState::TestsPassed { run: by, .. }) => *by == run.id,
        Some(
            EntryState::NotReady
            | EntryState::Pending { .. }
            | EntryState::Testing { .. }
            | EntryState::PendingFailure { .. }
            | EntryState::Ended(_),
        ) => false,
    };
    run.ahead.iter().all(|(_, pr)| settled(*pr)) && passed_by(queue, run).next().is_some()
}

/// The candidate is on the target. Where the tested tree itself had to land, it must have; if the
/// host landed another, that is said loudly, and what was built on it starts again.
pub(super) fn landed(draft: &mut Draft, id: RunId, sha: &Sha, tree: &TreeId) {
    let Some(landing) = draft.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return draft.ignored(IgnoredBecause::NoSuchLanding);
    };
    draft.queue.header.landing = None;
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
        let exit = Exit::Merged {
            reason,
            sha: Some(sha.clone()),
            tested_tree: tested.clone(),
            landed_tree: Some(tree.clone()),
        };
        let because = Because::new(reason.word(), &Actor::Queue);
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

pub(super) fn refused(draft: &mut Draft, id: RunId, because: &LandRefusal) {
    let Some(landing) = draft.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return draft.ignored(IgnoredBecause::NoSuchLanding);
    };
    draft.queue.header.landing = None;
    let fail = |draft: &mut Draft, pr: PrNumber, reason, culprit, details: Vec<String>| {
        let entry = draft.queue.entry_id(pr);
        let exit = Exit::Failed { reason, culprit, details };
        leave::leave(draft, entry, exit, &Actor::Host);
    };
    match because {
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
            host_facts::set_target(draft, head, tree, draft.at);
            facts::start_over(draft);
        }
        LandRefusal::TargetMissing => host_facts::target_missing(draft),
        LandRefusal::Refused { words } => {
            let Some(run) = draft.run(id) else { return };
            let queue = draft.queue.clone();
            let prs: BTreeSet<PrNumber> = passed_by(&queue, &run).map(|entry| entry.pr).collect();
            for pr in prs {
                let details = vec![words.clone()];
                fail(draft, pr, FailReason::MergeRefused, Culprit::Itself, details);
            }
        }
    }
}
