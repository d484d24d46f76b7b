//! Landing tested candidates.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::{EntryId, PrNumber, RunId, Sha, TreeId};

use super::super::ended::Numbered;
use super::super::{
    Actor, Change, Composition, Culprit, Decision, Effect, Entry, EntryState, Exit, FailReason,
    IgnoredBecause, Land, LandRefusal, Landing, LandingProof, LinePosition, MergeReason, Mismatch,
    Mode, PassReason, Queue, QueuedReason, TestRun, lanes,
};
use super::builder::{Because, TransitionBuilder};
use super::{composition, empty, facts, frozen, host_facts, landings, leave, red, targets, window};

/// Starts the landing of a tested candidate once everything that it contains is settled. Returns
/// whether it did.
pub(super) fn land(builder: &mut TransitionBuilder) -> bool {
    let header = &builder.queue.header;
    if header.landing.is_some() || header.target.missing || !header.state.moves() {
        return false;
    }
    if header.target.head.is_none() {
        return false;
    }
    let Some(ready) = next_to_land(builder) else { return false };
    adopt(builder, ready);
    let Some(land) = landing(&builder.queue, ready) else { return false };
    builder.queue.header.landing =
        Some(Landing { run: ready, runs: vec![ready], since: builder.at, exact: land.exact });
    builder.effect(Effect::Land(land));
    true
}

/// The effect that lands the candidate of a run.
fn landing(queue: &Queue, ready: RunId) -> Option<Land> {
    let run = queue.run(ready)?;
    let expected = queue.header.target.head.clone()?;
    let exact = match queue.mode() {
        Mode::Single => true,
        Mode::Parallel => run.root.as_ref() == Some(&expected),
    };
    Some(Land {
        run: run.id,
        target: queue.header.branch.clone(),
        expected,
        candidate: run.candidate.clone()?,
        exact,
        changes: passed_by(queue, run).iter().map(|entry| Change::of(entry)).collect(),
        method: run.method,
    })
}

/// The passed run that lands next: if several candidates contain only what has landed or passed,
/// the one that lands the fewest pull requests.
fn next_to_land(builder: &mut TransitionBuilder) -> Option<RunId> {
    let (first, waiting) = first_to_land(&builder.queue);
    for (run, pr) in waiting {
        builder.queue.by_status.wait(run, pr);
    }
    first
}

/// Finds the passed run that lands next, and the runs that must wait for an entry ahead until it
/// changes.
pub(super) fn first_to_land(queue: &Queue) -> (Option<RunId>, Vec<(Numbered, PrNumber)>) {
    let mut first: Option<(usize, Numbered)> = None;
    let mut waiting = Vec::new();
    if frozen::holds_all(queue) {
        return (None, waiting);
    }
    for numbered in queue.by_status.passed() {
        let Some(run) = queue.run(numbered.1) else { continue };
        let is_aside = || queue.started.of_run(run.id).any(|entry| entry.aside().is_some());
        if is_aside() || frozen::holds_landing(queue, run) {
            continue;
        }
        let mut live = run.group.iter().filter(|it| queue.entry(it.entry).is_some()).count();
        let mut waits_for = None;
        for ahead in lanes::live_ahead(queue, run) {
            if lands_before(queue, run, ahead) {
                waits_for = Some(ahead.pr);
                break;
            }
            live += 1;
        }
        if let Some(pr) = waits_for {
            waiting.push((numbered, pr));
        } else if queue.started.of_run(run.id).next().is_some() {
            first = first.into_iter().chain([(live, numbered)]).min();
            if live <= 1 {
                break;
            }
        }
    }
    (first.map(|(_, (_, id))| id), waiting)
}

/// Whether an entry ahead of a passed run keeps it from landing next: it has not passed, or it has
/// passed by a run whose group this candidate contains, so that fewer pull requests land with that
/// run.
fn lands_before(queue: &Queue, run: &TestRun, ahead: &Entry) -> bool {
    match ahead.state {
        EntryState::TestsPassed { run: by, .. } => {
            let group = queue.run(by).filter(|_| by != run.id).map(|by| &by.group);
            group.is_some_and(|group| group.iter().all(|member| run.contains(member.pr)))
        }
        EntryState::NotReady
        | EntryState::Pending { .. }
        | EntryState::Testing { .. }
        | EntryState::PendingFailure { .. }
        | EntryState::Ended(_) => true,
    }
}

/// The live entries that passed by this run, in the order of its candidate.
fn passed_by(queue: &Queue, run: &TestRun) -> Vec<Arc<Entry>> {
    let mut entries = leave::in_candidate_order(queue, run);
    entries.retain(|entry| matches!(entry.state, EntryState::TestsPassed { .. }));
    entries
}

/// Attributes every entry in the candidate to the landing run, including entries that another run
/// has passed.
fn adopt(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id) else { return };
    let queue = &builder.queue;
    let group = run.group.iter().filter_map(|member| queue.entry(member.entry));
    let of_others: Vec<(EntryId, RunId)> = lanes::live_ahead(queue, &run)
        .chain(group)
        .filter_map(|entry| Some((entry.id, entry.state.run().filter(|other| *other != id)?)))
        .collect();
    for (entry, other) in of_others {
        builder.pass_on(entry, id);
        builder.left(other);
    }
}

/// The data of [`Fact::Landed`](super::super::Fact::Landed).
#[derive(Clone, Copy)]
pub(super) struct Landed<'a> {
    pub(super) sha: &'a Sha,
    pub(super) tree: &'a TreeId,
    pub(super) composition: Option<&'a Composition>,
}

/// Completes a landing. If the tested tree had to land and the host landed another, the planner
/// records [`Decision::LandedTreeDiffers`], restarts the runs built on the candidate and pauses the
/// queue.
pub(super) fn landed(builder: &mut TransitionBuilder, id: RunId, landed: &Landed<'_>) {
    let Landed { sha, tree, composition } = *landed;
    let Some(landing) = builder.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return builder.ignored(IgnoredBecause::NoSuchLanding);
    };
    builder.queue.header.landing = None;
    // The target did not move: it already contained every change.
    let base = builder.queue.header.target.head.clone();
    let added_nothing = base.as_ref() == Some(sha);
    host_facts::set_target(builder, sha, tree, builder.at);
    let Some(run) = builder.run(id) else { return };
    let is_urgent = passed_by(&builder.queue, &run).iter().any(|it| it.priority.is_urgent());
    red::landed(builder, is_urgent, sha);
    let candidate = run.candidate.clone();
    let tested = candidate.as_ref().map(|candidate| candidate.tree.clone());
    let merged = passed_by(&builder.queue, &run);
    window::landed(builder, id, merged.len());
    // The host has merged something else on its own.
    let wrong = tested.as_ref().filter(|tested| landing.exact && *tested != tree);
    let mismatch = wrong.zip(base.as_ref()).map(|(tested, base)| Mismatch {
        base: base.clone(),
        commit: sha.clone(),
        found: tree.clone(),
        expected: Some(tested.clone()),
        paths: Vec::new(),
    });
    let wrong = wrong.cloned();
    let proof = base.map(|base| LandingProof {
        base,
        changes: merged.iter().map(|it| (it.pr, it.pull_request.head.clone())).collect(),
        method: run.method,
        exact: landing.exact,
        composition: composition.or(run.composition.as_ref()).cloned(),
        mismatch,
    });
    // An urgent entry that came during the landing stands ahead of it. Others depended on it only
    // through what has landed.
    let at_front = |entry: &Arc<Entry>| matches!(entry.place, LinePosition::Front { .. });
    if builder.queue.started.has_front() && !merged.iter().all(at_front) {
        builder.queue.started.forget_under();
    }
    for entry in merged {
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
                proof: proof.clone().map(Box::new),
            }
        };
        let because = Because::new(exit.reason(), &Actor::Queue);
        builder.move_entry(entry.id, EntryState::Ended(exit.clone()), because);
        landings::report_mismatch(builder, &entry, &exit);
        leave::release_held_by(builder, entry.pr);
    }
    if candidate.is_some_and(|candidate| candidate.sha == *sha) {
        stand_on_target(builder, &run, sha);
    }
    if let Some(tested) = wrong {
        builder.decision(Decision::LandedTreeDiffers {
            run: id,
            tested: tested.to_string(),
            landed: tree.to_string(),
        });
        composition::pause(
            builder,
            &format!(
                "{sha} landed with the tree {tree}, but {tested} was tested: the git host has merged \
                 something else"
            ),
        );
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
        .filter(|run| run.root == landed.root && run.contains(last.pr))
        .map(|run| run.id)
        .collect();
    for run in behind {
        builder.change_run(run, |run| run.root = Some(head.clone()));
    }
}

/// Whether this pull request lands with this run.
fn passed(builder: &TransitionBuilder, id: RunId, pr: PrNumber) -> bool {
    let run = builder.queue.run(id);
    run.is_some_and(|run| passed_by(&builder.queue, run).iter().any(|entry| entry.pr == pr))
}

pub(super) fn refused(builder: &mut TransitionBuilder, id: RunId, because: &LandRefusal) {
    let Some(landing) = builder.queue.header.landing.clone().filter(|landing| landing.run == id)
    else {
        return builder.ignored(IgnoredBecause::NoSuchLanding);
    };
    builder.queue.header.landing = None;
    let landed = entries_of(builder, id);
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
        LandRefusal::Mismatch(mismatch) => composition::not_landed(builder, id, mismatch),
        LandRefusal::Refused { words } => {
            let Some(run) = builder.run(id) else { return };
            let prs: BTreeSet<PrNumber> =
                passed_by(&builder.queue, &run).iter().map(|entry| entry.pr).collect();
            for pr in prs {
                let details = vec![words.clone()];
                fail(builder, pr, FailReason::MergeRefused, Culprit::Host, details);
            }
        }
    }
    targets::request_after_landing(builder, &landed);
}

/// The entries that land with a run.
pub(super) fn entries_of(builder: &TransitionBuilder, id: RunId) -> Vec<EntryId> {
    let passed = |run| passed_by(&builder.queue, run).iter().map(|entry| entry.id).collect();
    builder.run(id).as_deref().map(passed).unwrap_or_default()
}
