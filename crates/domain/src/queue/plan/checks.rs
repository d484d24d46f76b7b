//! Check results, and the consequences of success and failure.

use std::sync::Arc;

use crate::ids::{EntryId, PrNumber, RunId, Sha};

use super::super::retry::{Verdict, described};
use super::super::{
    Actor, CheckCause, CheckReport, CheckStatus, Culprit, Decision, Entry, EntryState, Evidence,
    Exit, ExternalReport, FailureCause, IgnoredBecause, PassReason, Proven, Queue, Refusal,
    RetryClass, RunStatus, TestFailure, TestRun, lanes,
};
use super::builder::{Because, TransitionBuilder};
use super::{bisect, leave, red, retry, timeouts, window};

/// Records reports, and ends the run at the first required failure or when every required status
/// has succeeded.
pub(super) fn reported(
    builder: &mut TransitionBuilder,
    id: RunId,
    sha: &Sha,
    reports: &[CheckReport],
    read: bool,
) {
    let Some(run) = builder.run(id).filter(|run| run.status == RunStatus::Testing) else {
        return builder.ignored(IgnoredBecause::NoSuchRun);
    };
    if run.candidate.as_ref().is_none_or(|candidate| candidate.sha != *sha) {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    let mut run = Arc::unwrap_or_clone(run);
    run.read |= read;
    let mut news = false;
    for report in reports {
        let is_new = note(&mut run, report, read);
        if is_new && !report.excused.is_empty() {
            let (check, tests) = (report.name.clone(), report.excused.clone());
            builder.decision(Decision::Excused { run: id, check, tests });
        }
        news |= is_new;
    }
    if !news {
        return builder.ignored(IgnoredBecause::Known);
    }
    conclude(builder, run);
}

/// Records the report of an external check. A repeated report changes nothing.
pub(super) fn report_external(
    builder: &mut TransitionBuilder,
    report: &ExternalReport,
) -> Result<(), Refusal> {
    let run = builder.run(report.run).ok_or(Refusal::UnknownRun { run: report.run })?;
    if run.accepts(report)? {
        let mut run = Arc::unwrap_or_clone(run);
        run.record(report.check.clone());
        conclude(builder, run);
    }
    Ok(())
}

/// Records what is known about the causes of failed checks, which may decide the run. A cause that
/// is known does not change.
pub(super) fn explained(
    builder: &mut TransitionBuilder,
    id: RunId,
    sha: &Sha,
    causes: &[CheckCause],
) {
    let Some(run) = builder.run(id).filter(|run| run.status == RunStatus::Testing) else {
        return builder.ignored(IgnoredBecause::NoSuchRun);
    };
    if run.candidate.as_ref().is_none_or(|candidate| candidate.sha != *sha) {
        return builder.ignored(IgnoredBecause::Superseded);
    }
    let mut run = Arc::unwrap_or_clone(run);
    let mut news = false;
    for cause in causes {
        news |= retry::learn(&mut run, cause);
    }
    if !news {
        return builder.ignored(IgnoredBecause::Known);
    }
    conclude(builder, run);
}

/// A run, unless it ended earlier in the same step: a run ahead of it failed or landed.
fn running(builder: &TransitionBuilder, id: RunId) -> Option<Arc<TestRun>> {
    builder.run(id).filter(|run| run.status.is_running())
}

/// Judges a run whose failed checks waited for others that are silent.
pub(super) fn after_silence(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = running(builder, id) else { return };
    if run.failures().next().is_some() {
        conclude(builder, Arc::unwrap_or_clone(run));
    }
}

/// Stops waiting for test reports that are overdue; the failures then count as they are.
pub(super) fn give_up_reports(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = running(builder, id) else { return };
    if run.reports_until().is_none_or(|until| until > builder.at) {
        return;
    }
    let mut run = Arc::unwrap_or_clone(run);
    let at = builder.at;
    run.causes.retain_mut(|it| {
        let FailureCause::Awaited { until: Some(until), otherwise } = &mut it.cause else {
            return true;
        };
        if *until > at {
            return true;
        }
        let evidence = std::mem::take(otherwise);
        let is_machine = !evidence.is_empty();
        let class = RetryClass::Infrastructure;
        it.cause = FailureCause::Retry { class, evidence, on_target: false };
        is_machine
    });
    conclude(builder, run);
}

/// Stores a run with new reports, and ends it or runs checks again if they decide that.
fn conclude(builder: &mut TransitionBuilder, mut run: TestRun) {
    let id = run.id;
    retry::excuse(builder, &mut run);
    timeouts::reported(builder, &mut run);
    let failed: Vec<String> = run.failures().map(described).collect();
    let (done, of) = run.progress();
    if failed.is_empty() {
        if of > 0 && done == of && run.status.is_running() {
            builder.end_changed_run(run, RunStatus::Passed);
            passed(builder, id, PassReason::OwnRun);
        } else {
            builder.put_run(run);
        }
        return;
    }
    let verdict = run.judge(&builder.queue, builder.at);
    builder.put_run(run);
    match verdict {
        Verdict::Fail => fail(builder, id, TestFailure::RequiredStatus, &failed),
        Verdict::Wait => retry::await_reports(builder, id),
        Verdict::Retry(retry) => retry::run_again(builder, id, retry),
        Verdict::Hold(tests) => red::hold(builder, id, tests),
    }
}

/// Records a report in a run; returns whether it changed anything. Repeats, and reports older than
/// the recorded one, change nothing. A later read of the host can turn a success back to pending,
/// because the check was rerun. A result of our own runner replaces a pending report even if it is
/// older: a runner that has lost its lease may have reported the start afterwards.
fn note(run: &mut TestRun, report: &CheckReport, read: bool) -> bool {
    if run.is_void(report) {
        return false;
    }
    let Some(known) = run.checks.iter_mut().find(|check| check.name == report.name) else {
        run.checks.push(report.clone());
        return true;
    };
    let later = report.at > known.at || (report.at == known.at && report.status > known.status);
    let has_failed = known.conclusion.is_some_and(|conclusion| !conclusion.is_success());
    let is_final = known.status == CheckStatus::Completed && (has_failed || !read);
    let ends =
        !read && known.status != CheckStatus::Completed && report.status == CheckStatus::Completed;
    if !ends && (!later || (is_final && report.status != CheckStatus::Completed)) {
        return false;
    }
    *known = report.clone();
    true
}

/// Marks a run and its group as passed; the success may absolve failures ahead.
pub(super) fn pass(builder: &mut TransitionBuilder, id: RunId, reason: PassReason) {
    builder.end_run(id, RunStatus::Passed);
    passed(builder, id, reason);
}

/// Marks the group of a passed run as passed.
fn passed(builder: &mut TransitionBuilder, id: RunId, reason: PassReason) {
    timeouts::passed(builder, id);
    let proven = builder.run(id).and_then(|run| {
        let tree = run.candidate.as_ref()?.tree.clone();
        let with = run.prs().collect();
        Some(Proven { tree, statuses: run.required.as_ref()?.names.clone(), with })
    });
    for entry in testing(builder, id) {
        let prove = |entry: &mut Entry| entry.proven.clone_from(&proven);
        let to = EntryState::TestsPassed { run: id, reason };
        builder.change_and_move(entry, prove, to, Because::new(reason, &Actor::Queue));
    }
    bisect::absolve(builder, id);
}

/// Marks a run as failed; its group is pending failure until the culprit is known.
pub(super) fn fail(
    builder: &mut TransitionBuilder,
    id: RunId,
    failure: TestFailure,
    details: &[String],
) {
    builder.end_run(id, RunStatus::Failed { failure, details: details.to_vec() });
    let others_may_be_at_fault =
        builder.run(id).is_some_and(|run| !all_ahead_landed(builder, &run));
    let depth = lanes::failure_window(&builder.queue);
    let group = testing(builder, id);
    let members = group.iter().filter_map(|id| builder.queue.entry(*id));
    let lacks_any = members.into_iter().any(bisect::lacks_any);
    let held = others_may_be_at_fault || depth > 0 || group.len() > 1 || lacks_any;
    if !held {
        window::failed(builder, id);
    }
    for entry in group.iter().copied() {
        if held {
            let to = EntryState::PendingFailure { run: id, failure, details: details.to_vec() };
            let because = Because::new(failure, &Actor::Queue).with(details.to_vec());
            builder.move_entry(entry, to, because);
        } else {
            blame(builder, entry, id, failure, details);
        }
    }
    if lacks_any && let [only] = group.as_slice() {
        bisect::failed_without(builder, *only);
    }
    if held && builder.run(id).is_some_and(|run| bisect::may_reparent(&builder.queue, &run)) {
        window::failed(builder, id);
        bisect::reparent(builder, id);
    }
}

fn testing(builder: &TransitionBuilder, id: RunId) -> Vec<EntryId> {
    let Some(run) = builder.run(id) else { return Vec::new() };
    let under_test = |entry: &EntryId| {
        let state = builder.queue.entry(*entry).map(|entry| &entry.state);
        matches!(state, Some(EntryState::Testing { run, .. }) if *run == id)
    };
    run.group.iter().map(|member| member.entry).filter(under_test).collect()
}

fn all_ahead_landed(builder: &TransitionBuilder, run: &TestRun) -> bool {
    run.ahead.iter().all(|(_, pr)| builder.queue.entry_of(*pr).is_none())
}

fn blame(
    builder: &mut TransitionBuilder,
    entry: EntryId,
    run: RunId,
    failure: TestFailure,
    details: &[String],
) {
    let exit = Exit::Failed {
        reason: failure.into(),
        culprit: Culprit::Itself,
        details: details.to_vec(),
        evidence: evidence(builder, entry, run).map(Box::new),
    };
    leave::leave(builder, entry, exit, &Actor::Queue);
}

/// The evidence for blaming this entry, whose run tested it alone.
fn evidence(builder: &TransitionBuilder, entry: EntryId, run: RunId) -> Option<Evidence> {
    let (entry, run) = (builder.queue.entry(entry)?, builder.run(run)?);
    let ahead: Vec<PrNumber> = run.ahead.iter().map(|(_, pr)| *pr).collect();
    let named = ahead.get(ahead.len().saturating_sub(Evidence::NAMED)..).unwrap_or_default();
    let proven = entry.proven.as_ref();
    let passed_without = proven.map_or_else(Vec::new, |proven| {
        named.iter().filter(|pr| !proven.with.contains(pr)).copied().collect()
    });
    let count = u32::try_from(ahead.len()).unwrap_or(u32::MAX);
    Some(Evidence { on_top_of: named.to_vec(), ahead: count, passed_without })
}

/// Settles a pending failure: everything ahead has passed or landed and no success behind can
/// absolve it, so the group is at fault. A single entry fails; a batch is bisected. Returns whether
/// there was such a failure.
pub(super) fn settle(builder: &mut TransitionBuilder) -> bool {
    if builder.queue.by_status.failed().next().is_none() {
        return false;
    }
    let queue = builder.queue.clone();
    let decided = queue
        .by_status
        .failed()
        .filter_map(|id| queue.run(id))
        .filter(|run| !held_by(&queue, run).is_empty())
        .find(|run| lanes::all_ahead_passed(&queue, run) && !lanes::may_be_absolved(&queue, run));
    let Some(run) = decided else { return false };
    window::failed(builder, run.id);
    match held_by(&queue, run).as_slice() {
        [] => false,
        [(entry, failure, details)] => {
            blame(builder, *entry, run.id, *failure, details);
            true
        }
        _ => {
            bisect::split_run(builder, run.id);
            true
        }
    }
}

/// The entries that are pending failure by this run, each with its failure and details.
fn held_by(queue: &Queue, run: &TestRun) -> Vec<(EntryId, TestFailure, Vec<String>)> {
    let entries = run.group.iter().filter_map(|member| queue.entry(member.entry));
    entries
        .filter_map(|entry| match &entry.state {
            EntryState::PendingFailure { run: by, failure, details } if *by == run.id => {
                Some((entry.id, *failure, details.clone()))
            }
            EntryState::NotReady
            | EntryState::Pending { .. }
            | EntryState::Testing { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. }
            | EntryState::Ended(_) => None,
        })
        .collect()
}
