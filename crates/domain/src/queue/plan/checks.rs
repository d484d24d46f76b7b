//! Results of checks, and what a failure means for whom.

use std::sync::Arc;

use crate::ids::{EntryId, RunId, Sha};

use super::super::{
    Actor, CheckReport, CheckStatus, Culprit, EntryState, Exit, IgnoredBecause, PassReason,
    RunStatus, TestFailure, TestRun,
};
use super::advance::in_line;
use super::draft::{Because, Draft};
use super::leave;

/// Takes reports in, and ends the run when they decide it: at the first required failure, or when
/// all that is required has succeeded.
pub(super) fn reported(draft: &mut Draft, id: RunId, sha: &Sha, reports: &[CheckReport]) {
    let Some(run) = draft.run(id).filter(|run| run.status == RunStatus::Testing) else {
        return draft.ignored(IgnoredBecause::NoSuchRun);
    };
    if run.candidate.as_ref().is_none_or(|candidate| candidate.sha != *sha) {
        return draft.ignored(IgnoredBecause::Superseded);
    }
    let mut run = Arc::unwrap_or_clone(run);
    let mut news = false;
    for report in reports {
        news |= note(&mut run, report);
    }
    if !news {
        return draft.ignored(IgnoredBecause::Known);
    }
    let failed = failed_checks(&run);
    let (done, of) = run.progress();
    draft.put_run(run);
    if !failed.is_empty() {
        fail(draft, id, TestFailure::RequiredStatus, &failed);
    } else if of > 0 && done == of {
        pass(draft, id);
    }
}

/// Writes a report into a run. Older ones than what is known, and repeats, say nothing new.
fn note(run: &mut TestRun, report: &CheckReport) -> bool {
    let Some(known) = run.checks.iter_mut().find(|check| check.name == report.name) else {
        run.checks.push(report.clone());
        return true;
    };
    let later = report.at > known.at || (report.at == known.at && report.status > known.status);
    if !later || (known.status == CheckStatus::Completed && report.status != CheckStatus::Completed)
    {
        return false;
    }
    *known = report.clone();
    true
}

fn failed_checks(run: &TestRun) -> Vec<String> {
    let Some(required) = &run.required else { return Vec::new() };
    run.checks
        .iter()
        .filter(|check| required.names.contains(&check.name))
        .filter(|check| check.conclusion.is_some_and(|conclusion| !conclusion.is_success()))
        .map(|check| match &check.summary {
            Some(summary) => format!("{}: {summary}", check.name),
            None => check.name.clone(),
        })
        .collect()
}

fn pass(draft: &mut Draft, id: RunId) {
    draft.end_run(id, RunStatus::Passed);
    let reason = PassReason::OwnRun;
    for entry in testing(draft, id) {
        let to = EntryState::TestsPassed { run: id, reason };
        draft.move_entry(entry, to, Because::new(reason.word(), &Actor::Queue));
    }
}

/// A run has failed: its group is held until it is clear whose fault that is.
pub(super) fn fail(draft: &mut Draft, id: RunId, failure: TestFailure, details: &[String]) {
    draft.end_run(id, RunStatus::Failed { failure, details: details.to_vec() });
    let others_may_be_at_fault = draft.run(id).is_some_and(|run| !all_ahead_landed(draft, &run));
    let depth = draft.queue.header.settings.pending_failure_depth;
    for entry in testing(draft, id) {
        if others_may_be_at_fault || depth > 0 {
            let to = EntryState::PendingFailure { run: id, failure, details: details.to_vec() };
            let because = Because::new(failure.word(), &Actor::Queue).with(details.to_vec());
            draft.move_entry(entry, to, because);
        } else {
            blame(draft, entry, failure, details);
        }
    }
}

fn testing(draft: &Draft, id: RunId) -> Vec<EntryId> {
    let Some(run) = draft.run(id) else { return Vec::new() };
    let under_test = |entry: &EntryId| {
        let state = draft.queue.entry(*entry).map(|entry| &entry.state);
        matches!(state, Some(EntryState::Testing { run, .. }) if *run == id)
    };
    run.group.iter().map(|member| member.entry).filter(under_test).collect()
}

fn all_ahead_landed(draft: &Draft, run: &TestRun) -> bool {
    run.ahead.iter().all(|(_, pr)| draft.queue.entry_of(*pr).is_none())
}

fn blame(draft: &mut Draft, entry: EntryId, failure: TestFailure, details: &[String]) {
    let exit = Exit::Failed {
        reason: failure.into(),
        culprit: Culprit::Itself,
        details: details.to_vec(),
    };
    leave::leave(draft, entry, exit, &Actor::Queue);
}

/// Settles the first held failure that can be settled: everything ahead has passed or landed, so
/// it is its own fault, and no successor that is still under test may absolve it. Returns whether
/// there was one.
pub(super) fn settle(draft: &mut Draft) -> bool {
    let mut all_ahead_passed = true;
    let mut settled = None;
    for entry in in_line(&draft.queue) {
        match &entry.state {
            EntryState::TestsPassed { .. } | EntryState::Pending { held_by: Some(_), .. } => {}
            EntryState::PendingFailure { run, failure, details } => {
                if all_ahead_passed && !successors_are_testing(draft, *run) {
                    settled = Some((entry.id, *failure, details.clone()));
                    break;
                }
                all_ahead_passed = false;
            }
            EntryState::Testing { .. } | EntryState::Pending { held_by: None, .. } => {
                all_ahead_passed = false;
            }
            EntryState::NotReady | EntryState::Ended(_) => break,
        }
        if !all_ahead_passed {
            break;
        }
    }
    let Some((entry, failure, details)) = settled else { return false };
    blame(draft, entry, failure, &details);
    true
}

/// Whether one of the next `pendingFailureDepth` groups that contain this run is still under test.
fn successors_are_testing(draft: &Draft, id: RunId) -> bool {
    let depth = draft.queue.header.settings.pending_failure_depth;
    let Ok(depth) = usize::try_from(depth) else { return false };
    let Some(run) = draft.run(id) else { return false };
    let Some(last) = run.group.last().map(|member| member.pr) else { return false };
    let mut successors: Vec<&TestRun> =
        draft.queue.runs().filter(|other| other.ahead.iter().any(|(_, pr)| *pr == last)).collect();
    successors.sort_by_key(|other| (other.ahead.len(), other.number));
    successors.iter().take(depth).any(|other| other.status.is_running())
}
