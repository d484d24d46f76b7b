//! Check results, and the consequences of success and failure.

use std::sync::Arc;

use crate::ids::{EntryId, PrNumber, RunId, Sha};

use super::super::{
    Actor, CheckConclusion, CheckReport, CheckStatus, Culprit, EntryState, Evidence, Exit,
    ExternalReport, IgnoredBecause, PassReason, Proven, Queue, Refusal, RunStatus, TestFailure,
    TestRun, lanes,
};
use super::builder::{Because, TransitionBuilder};
use super::{bisect, leave};

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
    let mut news = false;
    for report in reports {
        news |= note(&mut run, report, read);
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

/// Stores a run with new reports, and ends it if they decide it.
fn conclude(builder: &mut TransitionBuilder, run: TestRun) {
    let id = run.id;
    let failed = failed_checks(&run);
    let (done, of) = run.progress();
    builder.put_run(run);
    if !failed.is_empty() {
        fail(builder, id, TestFailure::RequiredStatus, &failed);
    } else if of > 0 && done == of {
        pass(builder, id, PassReason::OwnRun);
    }
}

/// Records a report in a run; returns whether it changed anything. Repeats, and reports older than
/// the recorded one, change nothing. A later read of the host can turn a success back to pending,
/// because the check was rerun. A result of our own runner replaces a pending report even if it is
/// older: a runner that has lost its lease may have reported the start afterwards.
fn note(run: &mut TestRun, report: &CheckReport, read: bool) -> bool {
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

/// The required checks that did not succeed, with their summaries. One that was cancelled, say,
/// does not read like one that failed.
fn failed_checks(run: &TestRun) -> Vec<String> {
    let Some(required) = &run.required else { return Vec::new() };
    let described = |check: &CheckReport| {
        let conclusion = check.conclusion.filter(|conclusion| !conclusion.is_success())?;
        Some(match (&check.summary, conclusion) {
            (Some(summary), _) => format!("{}: {summary}", check.name),
            (None, CheckConclusion::Failure) => check.name.clone(),
            (None, other) => {
                let word = other.as_str().to_lowercase().replace('_', " ");
                format!("{}: {word}", check.name)
            }
        })
    };
    let of_run = run.checks.iter().filter(|check| required.names.contains(&check.name));
    of_run.filter_map(described).collect()
}

/// Marks a run and its group as passed; the success may absolve failures ahead.
pub(super) fn pass(builder: &mut TransitionBuilder, id: RunId, reason: PassReason) {
    builder.end_run(id, RunStatus::Passed);
    let proven = builder.run(id).and_then(|run| {
        let tree = run.candidate.as_ref()?.tree.clone();
        let with = run.prs().collect();
        Some(Proven { tree, statuses: run.required.as_ref()?.names.clone(), with })
    });
    for entry in testing(builder, id) {
        builder.change_entry(entry, |entry| entry.proven.clone_from(&proven));
        let to = EntryState::TestsPassed { run: id, reason };
        builder.move_entry(entry, to, Because::new(reason, &Actor::Queue));
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
    let held = others_may_be_at_fault || depth > 0 || group.len() > 1;
    for entry in group {
        if held {
            let to = EntryState::PendingFailure { run: id, failure, details: details.to_vec() };
            let because = Because::new(failure, &Actor::Queue).with(details.to_vec());
            builder.move_entry(entry, to, because);
        } else {
            blame(builder, entry, id, failure, details);
        }
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
