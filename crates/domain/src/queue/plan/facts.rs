//! Facts: dispatch, and the facts about pull requests, outages and time.

use std::sync::Arc;

use super::super::{
    Actor, CancelReason, Decision, Dependency, DependencyState, EntryState, Exit, Fact,
    FailureCause, HostTrouble, IgnoredBecause, MergeReason, PrState, PullRequest, PullRequestState,
    QueuedReason, Reason, share,
};
use super::builder::{Because, TransitionBuilder};
use super::{
    advance, checks, composition, dependencies, empty, host_facts, land, landings, leave, targets,
    timeouts,
};
use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::{Span, Timestamp};

/// The most characters of a host's message that are kept.
const KEPT_WORDS: usize = 500;

pub(super) fn take_in(builder: &mut TransitionBuilder, fact: &Fact) {
    match fact {
        Fact::PullRequestSeen { pull_request, read_at } => {
            pull_request_seen(builder, pull_request, *read_at);
        }
        Fact::PullRequestGone { pr } => pull_request_gone(builder, *pr),
        Fact::DependencySeen { on, state } => dependencies::read(builder, on, *state),
        Fact::TargetsComputed { pr, head, revision, computed } => {
            targets::computed(builder, *pr, head, *revision, computed);
        }
        Fact::TargetSeen { head, tree, read_at } => {
            host_facts::target_seen(builder, head, tree, *read_at);
        }
        Fact::TargetMissing => host_facts::target_missing(builder),
        Fact::CandidateBuilt {
            run,
            branch,
            candidate,
            statuses,
            head_checks,
            empty,
            composition,
            has_forge,
        } => {
            if !empty::removed(builder, *run, candidate, empty) {
                let composition = composition.as_ref();
                let has_forge = *has_forge;
                let built = host_facts::Built { branch, candidate, composition, has_forge };
                host_facts::candidate_built(builder, *run, &built, statuses, head_checks);
            }
        }
        Fact::CandidateConflict { run, pr, with, paths } => {
            host_facts::candidate_conflict(builder, *run, *pr, *with, paths);
        }
        Fact::CandidateMismatch { run, mismatch } => composition::wrong(builder, *run, mismatch),
        Fact::CandidateRefused { run, words } => {
            host_facts::candidate_refused(builder, *run, words);
        }
        Fact::ChecksReported { run, sha, checks, read } => {
            checks::reported(builder, *run, sha, checks, *read);
        }
        Fact::CausesFound { run, sha, causes } => checks::explained(builder, *run, sha, causes),
        Fact::Landed { run, sha, tree, composition } => {
            land::landed(
                builder,
                *run,
                &land::Landed { sha, tree, composition: composition.as_ref() },
            );
        }
        Fact::LandRefused { run, because } => land::refused(builder, *run, because),
        Fact::LandingsChecked { was, head, lost, back } => {
            landings::checked(builder, was, head, lost, back);
        }
        Fact::LandingsAudited { proved, not_checked, wrong } => {
            landings::audited(builder, *proved, *not_checked, wrong);
        }
        Fact::HostUnreachable { trouble } => host_unreachable(builder, trouble),
        Fact::HostReachable => host_reachable(builder),
        Fact::AnswerLost { run } => answer_lost(builder, *run),
        Fact::TimePassed => time_passed(builder),
    }
}

/// Handles a read of a pull request. Outside the line, the entry's readiness is evaluated again. In
/// the line, a change of the tested content removes the entry.
pub(super) fn pull_request_seen(
    builder: &mut TransitionBuilder,
    seen: &PullRequest,
    read_at: Timestamp,
) {
    let is_dependency = match seen.state {
        PullRequestState::Merged => {
            dependencies::seen(builder, &Dependency::Own(seen.number), DependencyState::Merged)
        }
        PullRequestState::Open | PullRequestState::Closed => false,
    };
    let id = builder.queue.entry_id(seen.number);
    let Some(entry) = builder.entry(id) else {
        if !is_dependency && !dependencies::hinted(builder, seen.number, seen.state.into()) {
            builder.ignored(IgnoredBecause::NoSuchEntry);
        }
        return;
    };
    if *entry.pull_request == *seen {
        return builder.ignored(IgnoredBecause::Known);
    }
    if read_at < entry.seen_at {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    if leave::is_landing(&builder.queue, &entry) {
        // The landing itself checks the head; after its answer the host is read again.
        return builder.ignored(IgnoredBecause::Superseded);
    }
    let known = entry.pull_request.clone();
    let settings = &builder.queue.header.settings;
    if share::of(settings, &known) != share::of(settings, seen) {
        advance::turn_changed(builder, id, entry.priority, seen);
    }
    builder.change_entry(id, |entry| {
        entry.pull_request = Arc::new(seen.clone());
        entry.seen_at = read_at;
    });
    let in_line = entry.state.name() != PrState::NotReady;
    let cancelled = |reason| Exit::Cancelled { reason, by: Actor::Host };
    let exit = match seen.state {
        PullRequestState::Merged if seen.base == builder.queue.header.branch => {
            Some(Exit::Merged {
                reason: MergeReason::Manual,
                sha: seen.merged_as.clone(),
                tested_tree: None,
                landed_tree: None,
                proof: None,
            })
        }
        PullRequestState::Merged => Some(cancelled(CancelReason::MergedElsewhere)),
        PullRequestState::Closed => Some(cancelled(CancelReason::Closed)),
        PullRequestState::Open if !in_line => None,
        PullRequestState::Open if seen.head != known.head => {
            Some(cancelled(CancelReason::PushedTo))
        }
        PullRequestState::Open if seen.base != known.base => {
            Some(cancelled(CancelReason::BaseChanged))
        }
        PullRequestState::Open if seen.draft => Some(cancelled(CancelReason::ConvertedToDraft)),
        PullRequestState::Open => None,
    };
    if let Some(exit) = exit {
        return leave::leave_as(builder, &entry, exit, &Actor::Host);
    }
    builder.decision(Decision::Changed { pr: seen.number, what: "seen on the host".into() });
    if seen.head != known.head {
        targets::request(builder, id);
    }
    dependencies::update(builder, id);
    match entry.state {
        EntryState::NotReady => advance::admit(builder, id),
        EntryState::Pending { held_by: None, .. } => leave_line_if_not_mergeable(builder, id),
        EntryState::Pending { held_by: Some(_), .. }
        | EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. }
        | EntryState::Ended(_) => {}
    }
}

/// Removes a waiting entry from the line if the host reports it as not mergeable. A mergeability
/// that the host is still computing changes nothing.
fn leave_line_if_not_mergeable(builder: &mut TransitionBuilder, id: EntryId) {
    let Some(entry) = builder.entry(id) else { return };
    let super::super::Mergeability::NotMergeable(words) = &entry.pull_request.mergeability else {
        return;
    };
    if entry.force_enqueued {
        return;
    }
    let because = Because::new(Reason::NoLongerReady, &Actor::Host).with(vec![words.clone()]);
    leave::leave_line(builder, id, because, QueuedReason::PredecessorCancelled);
}

fn pull_request_gone(builder: &mut TransitionBuilder, pr: PrNumber) {
    let id = builder.queue.entry_id(pr);
    let Some(entry) = builder.entry(id) else {
        if !dependencies::hinted(builder, pr, DependencyState::Missing) {
            builder.ignored(IgnoredBecause::NoSuchEntry);
        }
        return;
    };
    if leave::is_landing(&builder.queue, &entry) {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    let exit = Exit::Cancelled { reason: CancelReason::Closed, by: Actor::Host };
    leave::leave(builder, id, exit, &Actor::Host);
}

/// Repeats a lost effect: a landing is sent again, which is idempotent; a candidate is rebuilt.
fn answer_lost(builder: &mut TransitionBuilder, id: RunId) {
    if builder.queue.header.landing.as_ref().is_some_and(|landing| landing.run == id) {
        let landed = land::entries_of(builder, id);
        builder.queue.header.landing = None;
        // Before anything can cancel what may have landed.
        land::land(builder);
        targets::request_after_landing(builder, &landed);
        return;
    }
    if builder.run(id).is_none_or(|run| !run.status.is_running()) {
        return builder.ignored(IgnoredBecause::NoSuchRun);
    }
    leave::requeue_run(builder, id, QueuedReason::AnswerLost, &Actor::Queue);
}

fn host_unreachable(builder: &mut TransitionBuilder, trouble: &HostTrouble) {
    let words = trouble.words.chars().take(KEPT_WORDS).collect();
    let trouble = HostTrouble { kind: trouble.kind, words };
    let at = builder.at;
    let host = &mut builder.queue.header.host;
    if host.trouble.as_ref().map(|known| known.kind) == Some(trouble.kind) {
        return builder.ignored(IgnoredBecause::Known);
    }
    host.unreachable_since.get_or_insert(at);
    host.trouble = Some(trouble);
}

/// Extends all deadlines by the length of the outage.
fn host_reachable(builder: &mut TransitionBuilder) {
    let Some(since) = builder.queue.header.host.unreachable_since.take() else {
        return builder.ignored(IgnoredBecause::Known);
    };
    builder.queue.header.host.trouble = None;
    targets::request_after_outage(builder);
    let away = builder.at.since(since);
    for id in running(builder) {
        builder.change_run(id, |run| {
            run.deadline = run.deadline.map(|at| at.plus(away));
            run.built_at = run.built_at.map(|at| at.plus(away));
            run.first_check_at = run.first_check_at.map(|at| at.plus(away));
            for cause in &mut run.causes {
                if let FailureCause::Awaited { until: Some(until), .. } = &mut cause.cause {
                    *until = until.plus(away);
                }
            }
        });
    }
}

/// The running test runs, earlier ones first: when one fails, later ones that contain it end with it.
fn running(builder: &TransitionBuilder) -> Vec<RunId> {
    let running = builder.queue.runs().filter(|run| run.status.is_running());
    let mut runs: Vec<(u64, RunId)> = running.map(|run| (run.number, run.id)).collect();
    runs.sort_unstable();
    runs.into_iter().map(|(_, run)| run).collect()
}

fn time_passed(builder: &mut TransitionBuilder) {
    if builder.queue.header.target.head.is_none() && !builder.queue.header.target.missing {
        let branch = builder.queue.header.branch.clone();
        builder.effect(super::super::Effect::InspectTarget { branch });
    }
    if builder.queue.header.host.unreachable_since.is_some() {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    let at = builder.at;
    note_silence(builder);
    for id in running(builder) {
        checks::give_up_reports(builder, id);
        timeouts::enforce(builder, id);
    }
    while super::not_ready_deadline(&builder.queue).is_some_and(|due| due <= at) {
        let hours = Span::hours(builder.queue.header.settings.not_ready_timeout_hours);
        let Some(id) = builder
            .queue
            .entries_in_order()
            .filter(|it| it.state == EntryState::NotReady && it.not_ready_since().plus(hours) <= at)
            .find(|it| super::may_time_out(&builder.queue, it))
            .map(|it| it.id)
        else {
            return;
        };
        let exit = Exit::Cancelled { reason: CancelReason::NotReadyTimeout, by: Actor::Queue };
        leave::leave(builder, id, exit, &Actor::Queue);
    }
}

/// Records the required statuses that have not reported, long before the run times out.
fn note_silence(builder: &mut TransitionBuilder) {
    let at = builder.at;
    for id in running(builder) {
        let Some(run) = builder.run(id) else { continue };
        if run.silence_due().is_some_and(|due| due <= at) {
            let names: Vec<String> = run.unreported().map(ToOwned::to_owned).collect();
            builder.change_run(id, |run| run.silent.clone_from(&names));
            builder.decision(Decision::StatusesSilent { run: id, names });
            checks::after_silence(builder, id);
        }
    }
}

/// Restarts every run, because a push from outside moved the target.
pub(super) fn start_over(builder: &mut TransitionBuilder) {
    leave::requeue_all(builder, QueuedReason::TargetPushed);
}
