//! Answers of the host: candidates, landings and the head of the target.

use crate::ids::{BranchName, EntryId, PrNumber, RunId, Sha, TreeId};

use crate::time::Timestamp;

use super::super::{
    Actor, Candidate, CheckConclusion, CheckReport, Composition, ConflictWith, Culprit, Effect,
    EntryState, Exit, FailReason, HostStatuses, IgnoredBecause, LinePosition, PassReason,
    QueuedReason, RequiredStatuses, RunChecks, RunStatus, StatusSource, Target, TestRun, lanes,
    turns,
};
use super::builder::{Because, TransitionBuilder};
use super::{bisect, checks, facts, landings, leave, timeouts};

/// Handles a read of the target. If a push from outside moved its head, every run starts again,
/// unless the new tree is one that the first run tested or was built on.
pub(super) fn target_seen(
    builder: &mut TransitionBuilder,
    head: &Sha,
    tree: &TreeId,
    read_at: Timestamp,
) {
    let target = &builder.queue.header.target;
    if target.head.as_ref() == Some(head) && !target.missing {
        return builder.ignored(IgnoredBecause::Known);
    }
    if target.seen_at.is_some_and(|seen_at| read_at < seen_at) {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    if builder.queue.header.landing.is_some() {
        // The move may be the landing itself, whose answer contains the new head.
        return builder.ignored(IgnoredBecause::Superseded);
    }
    // This includes a target that was deleted and restored.
    let same = target.tree.as_ref() == Some(tree) || first_candidate_tree(builder) == Some(tree);
    let was = target.head.clone();
    set_target(builder, head, tree, read_at);
    landings::ask(builder, was.as_ref(), head);
    if !same {
        facts::start_over(builder);
    }
}

pub(super) fn set_target(
    builder: &mut TransitionBuilder,
    head: &Sha,
    tree: &TreeId,
    seen_at: Timestamp,
) {
    let (head, tree) = (Some(head.clone()), Some(tree.clone()));
    builder.queue.header.target = Target { head, tree, missing: false, seen_at: Some(seen_at) };
}

fn first_candidate_tree(builder: &TransitionBuilder) -> Option<&TreeId> {
    let mut of_line = lanes::in_line(&builder.queue).filter(|entry| entry.aside().is_none());
    let first = of_line.find_map(|entry| entry.state.run())?;
    Some(&builder.queue.run(first)?.candidate.as_ref()?.tree)
}

/// Handles a missing target: nothing starts and nothing lands until it exists again. Results on its
/// last head are kept, because the branch may be restored unchanged.
pub(super) fn target_missing(builder: &mut TransitionBuilder) {
    if builder.queue.header.target.missing {
        return builder.ignored(IgnoredBecause::Known);
    }
    if builder.queue.header.landing.is_some() {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    builder.queue.header.target.missing = true;
    builder.queue.header.target.seen_at = Some(builder.at);
}

/// The data of [`Fact::CandidateBuilt`].
pub(super) struct Built<'a> {
    pub(super) branch: &'a BranchName,
    pub(super) candidate: &'a Candidate,
    pub(super) composition: Option<&'a Composition>,
    pub(super) has_forge: bool,
}

/// Starts the checks of a built candidate, if any status is required: an event requests the external
/// ones, and the checks runner gets the others.
pub(super) fn candidate_built(
    builder: &mut TransitionBuilder,
    id: RunId,
    built: &Built<'_>,
    statuses: &HostStatuses,
    head_checks: &[CheckReport],
) {
    let Built { branch, candidate, composition, has_forge } = *built;
    let Some(run) = builder.run(id).filter(|run| run.status == RunStatus::Building) else {
        // The run was cancelled, or the candidate was built twice: only the first one counts.
        let kept = builder.run(id).and_then(|run| run.candidate.clone());
        if kept.is_none_or(|kept| kept.sha != candidate.sha) {
            let expected = Some(candidate.sha.clone());
            builder.effect(Effect::DeleteBranch { branch: branch.clone(), expected });
        }
        return builder.ignored(IgnoredBecause::NoSuchRun);
    };
    let mut built = TestRun::clone(&run);
    built.candidate = Some(candidate.clone());
    built.composition = composition.cloned();
    let own = builder.queue.header.settings.required_statuses.clone();
    let required = match required_statuses(own, statuses) {
        Ok(required) => required,
        Err((reason, words)) => {
            builder.put_run(built);
            return fail_group(builder, id, reason, &Culprit::TargetBranch, &[words]);
        }
    };
    let (names, external) = (required.names.clone(), required.external.clone());
    built.required = Some(required);
    built.status = RunStatus::Testing;
    built.built_at = Some(builder.at);
    built.deadline = timeouts::built(builder);
    built.first_check_at = None;
    builder.put_run(built);
    builder.emit_candidate(id);
    if tree_is_proven(builder, &run, candidate, &names) {
        return checks::pass(builder, id, PassReason::SameTree);
    }
    if run.direct && head_has_passed(head_checks, &names) {
        builder.change_run(id, |run| run.checks = head_checks.to_vec());
        return checks::pass(builder, id, PassReason::OwnHead);
    }
    let prs: Vec<PrNumber> = run.group.iter().map(|member| member.pr).collect();
    let own: Vec<String> = names.into_iter().filter(|name| !external.contains(name)).collect();
    if !external.is_empty() {
        builder.emit_checks_requested(id, prs.clone(), external);
    }
    let Some(config_from) = builder.queue.header.target.head.clone() else { return };
    if has_forge && builder.queue.header.settings.create_prs_for_testing_branches {
        builder.effect(Effect::OpenTestPullRequest {
            run: id,
            branch: branch.clone(),
            target: builder.queue.header.branch.clone(),
            prs: prs.clone(),
        });
    }
    if own.is_empty() {
        return;
    }
    builder.effect(Effect::RunChecks(RunChecks {
        run: id,
        candidate: candidate.clone(),
        branch: branch.clone(),
        target: builder.queue.header.branch.clone(),
        config_from,
        prs,
        required: own,
        again: Vec::new(),
    }));
}

/// Whether every entry of the group has passed before with this tree and these statuses.
fn tree_is_proven(
    builder: &TransitionBuilder,
    run: &TestRun,
    candidate: &Candidate,
    names: &[String],
) -> bool {
    run.group.iter().all(|member| {
        let proven = builder.queue.entry(member.entry).and_then(|entry| entry.proven.as_ref());
        proven.is_some_and(|proven| {
            proven.tree == candidate.tree && names.iter().all(|name| proven.statuses.contains(name))
        })
    })
}

/// Whether every required status has succeeded on the pull request's own head.
fn head_has_passed(reports: &[CheckReport], names: &[String]) -> bool {
    names.iter().all(|name| {
        let last = reports.iter().filter(|check| check.name == *name).max_by_key(|it| it.at);
        last.is_some_and(|it| it.conclusion.is_some_and(CheckConclusion::is_success))
    })
}

/// The required statuses, from the first source that names any: the queue, the repository, the
/// host. Without one the run fails; a candidate never passes by default.
fn required_statuses(
    own: Option<Vec<String>>,
    statuses: &HostStatuses,
) -> Result<RequiredStatuses, (FailReason, String)> {
    let named = |names: Option<Vec<String>>, source| {
        let names = names.filter(|names| !names.is_empty())?;
        let is_external = |name: &&String| statuses.external.contains(name);
        let external = names.iter().filter(is_external).cloned().collect();
        Some(RequiredStatuses { names, source, external })
    };
    if let Some(required) = named(own, StatusSource::Queue) {
        return Ok(required);
    }
    if let Some(words) = &statuses.repository_error {
        return Err((FailReason::ConfigParsingFailure, words.clone()));
    }
    named(statuses.repository.clone(), StatusSource::RepositoryConfig)
        .or_else(|| named(statuses.branch_protection.clone(), StatusSource::BranchProtection))
        .ok_or_else(|| {
            let words = "neither the queue nor the repository nor the host names a required status";
            (FailReason::NoRequiredStatuses, words.to_owned())
        })
}

/// Ends a run that could not start, and fails every entry of its group.
fn fail_group(
    builder: &mut TransitionBuilder,
    id: RunId,
    reason: FailReason,
    culprit: &Culprit,
    details: &[String],
) {
    let Some(run) = builder.run(id) else { return };
    leave::give_up(builder, id, reason);
    for member in run.group.iter() {
        let (culprit, details) = (culprit.clone(), details.to_vec());
        let exit = Exit::Failed { reason, culprit, details, evidence: None };
        leave::leave(builder, member.entry, exit, &Actor::Queue);
    }
}

pub(super) fn candidate_refused(builder: &mut TransitionBuilder, id: RunId, words: &str) {
    if builder.run(id).is_none_or(|run| !run.status.is_running()) {
        return builder.ignored(IgnoredBecause::NoSuchRun);
    }
    let details = [words.to_owned()];
    fail_group(builder, id, FailReason::StartRefused, &Culprit::Host, &details);
}

/// Handles a merge conflict: final with the target itself, temporary with a pull request ahead,
/// which may still leave.
pub(super) fn candidate_conflict(
    builder: &mut TransitionBuilder,
    id: RunId,
    pr: PrNumber,
    with: ConflictWith,
    paths: &[String],
) {
    let Some(run) = builder.run(id).filter(|run| run.status == RunStatus::Building) else {
        return builder.ignored(IgnoredBecause::NoSuchRun);
    };
    let Some(place) = run.group.iter().position(|member| member.pr == pr) else {
        return builder.ignored(IgnoredBecause::NotOfRun);
    };
    let entry = builder.queue.entry_id(pr);
    let holder = match with {
        ConflictWith::Target => None,
        ConflictWith::Ahead(with) => {
            let Some((_, ahead)) = run.ahead.iter().rev().find(|(run, _)| *run == with) else {
                return builder.ignored(IgnoredBecause::NotOfRun);
            };
            Some(*ahead)
        }
        ConflictWith::Group(with) => {
            // Changes are applied in order, so a pull request can only conflict with those before
            // it.
            if !run.group.iter().take(place).any(|member| member.pr == with) {
                return builder.ignored(IgnoredBecause::NotOfRun);
            }
            Some(with)
        }
    };
    let was_held_by = builder.queue.entry(entry).and_then(|entry| match &entry.state {
        EntryState::Testing { was_held_by, .. } => *was_held_by,
        EntryState::NotReady
        | EntryState::Pending { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. }
        | EntryState::Ended(_) => None,
    });
    match holder {
        Some(holder) if builder.queue.entry_of(holder).is_some() => {
            hold(builder, id, entry, holder, paths);
        }
        Some(holder) => {
            // That pull request has landed or left meanwhile; the next attempt decides.
            leave::requeue_run(builder, id, QueuedReason::ConflictWithAhead, &Actor::Queue);
            builder.change_entry(entry, |entry| {
                if let EntryState::Pending { was_held_by, .. } = &mut entry.state {
                    *was_held_by = Some(holder);
                }
            });
        }
        None if builder.queue.entry(entry).is_some_and(bisect::lacks_any) => {
            // It may merge cleanly on top of what is ahead.
            let reason = QueuedReason::ReturnedToLine;
            leave::requeue_run(builder, id, reason, &Actor::Queue);
            builder.change_entry(entry, |entry| entry.reparented = true);
        }
        None => {
            let culprit = was_held_by.map_or(Culprit::TargetBranch, Culprit::PullRequest);
            leave::give_up(builder, id, FailReason::MergeConflict);
            let exit = Exit::Failed {
                reason: FailReason::MergeConflict,
                culprit,
                details: paths.to_vec(),
                evidence: None,
            };
            leave::leave(builder, entry, exit, &Actor::Queue);
        }
    }
}

/// Holds an entry until the one that it conflicts with has left or landed. The entries behind are
/// tested without it.
fn hold(
    builder: &mut TransitionBuilder,
    run: RunId,
    entry: EntryId,
    holder: PrNumber,
    paths: &[String],
) {
    let reason = QueuedReason::ConflictWithAhead;
    leave::give_up(builder, run, reason);
    let aside = builder.entry(entry).and_then(|entry| entry.aside());
    let (at, number) = (builder.at, builder.number());
    let turn = builder.entry(entry).map(|it| turns::again(&builder.queue, it.priority));
    builder.change_entry(entry, |entry| {
        let since = entry.entered_line_at.unwrap_or(at);
        entry.place = LinePosition::Waiting { since, number, turn: turn.unwrap_or_default() };
        entry.part.take_if(|_| aside.is_some());
    });
    let to = EntryState::Pending { reason, held_by: Some(holder), was_held_by: None };
    let because = Because::new(reason, &Actor::Queue).with(paths.to_vec());
    builder.move_entry(entry, to, because);
    leave::requeue_run(builder, run, reason, &Actor::Queue);
    if let Some(batch) = aside {
        bisect::dissolve(builder, batch, QueuedReason::BisectionRequired);
    }
}
