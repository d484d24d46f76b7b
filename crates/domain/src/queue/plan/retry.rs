//! What follows from the causes of failed checks: an excuse, a wait for test reports, or a retry.

use crate::ids::RunId;
use crate::time::Span;

use super::super::{
    Check, CheckCause, CheckConclusion, CheckStatus, Decision, Effect, EntryState, FailureCause,
    Retry, RunChecks, TestRun,
};
use super::builder::TransitionBuilder;
use super::timeouts;

/// Records the cause of a failed check; returns whether it is news. A cause of a later failure
/// replaces that of an earlier one, and a known cause replaces an awaited one.
pub(super) fn learn(run: &mut TestRun, cause: &CheckCause) -> bool {
    let is_required = run.required.as_ref().is_some_and(|it| it.names.contains(&cause.check));
    let is_void = run
        .retries
        .iter()
        .flat_map(|retry| &retry.failed)
        .any(|failed| failed.name == cause.check && failed.at >= cause.at);
    if !is_required || is_void {
        return false;
    }
    let Some(known) = run.causes.iter_mut().find(|known| known.check == cause.check) else {
        run.causes.push(cause.clone());
        return true;
    };
    let is_known = !matches!(known.cause, FailureCause::Awaited { .. });
    if cause.at < known.at || (cause.at == known.at && is_known) {
        return false;
    }
    if cause.at == known.at
        && let FailureCause::Awaited { otherwise: now, .. } = &cause.cause
        && let FailureCause::Awaited { otherwise, .. } = &mut known.cause
    {
        // A report that has come, and is not read yet, may name a failed test.
        let is_withdrawn = now.is_empty() && !otherwise.is_empty();
        if is_withdrawn {
            otherwise.clear();
        }
        return is_withdrawn;
    }
    let until = match (&known.cause, &cause.cause) {
        (FailureCause::Awaited { until, .. }, FailureCause::Awaited { until: None, .. }) => *until,
        _ => None,
    };
    *known = cause.clone();
    if let (FailureCause::Awaited { until: new, .. }, Some(_)) = (&mut known.cause, until) {
        *new = until;
    }
    true
}

/// Turns failures that are excused into neutral results.
pub(super) fn excuse(builder: &mut TransitionBuilder, run: &mut TestRun) {
    let excused = |check: &Check| match run.cause_of(check) {
        Some(FailureCause::Quarantined { tests }) => Some((check.name.clone(), tests.clone())),
        Some(
            FailureCause::Awaited { .. } | FailureCause::Retry { .. } | FailureCause::New { .. },
        )
        | None => None,
    };
    let found: Vec<(String, Vec<String>)> = run.failures().filter_map(excused).collect();
    for (name, tests) in found {
        if let Some(check) = run.checks.iter_mut().find(|check| check.name == name) {
            check.conclusion = Some(CheckConclusion::Neutral);
            let named = crate::flaky::listed(tests.iter().cloned());
            check.summary = Some(format!("only quarantined tests failed: {named}"));
        }
        builder.decision(Decision::Excused { run: run.id, check: name, tests });
    }
}

/// Has the reports of failed checks read whose wait starts with this step.
pub(super) fn await_reports(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id) else { return };
    let new = run.awaited_reports().filter(|(_, until)| until.is_none());
    let checks: Vec<Check> = new.map(|(check, _)| check.clone()).collect();
    let Some(sha) = run.candidate.as_ref().map(|it| it.sha.clone()) else { return };
    if checks.is_empty() {
        return;
    }
    let wait = Span::seconds(builder.queue.header.settings.evidence_wait_seconds);
    let due = builder.at.plus(wait);
    builder.change_run(id, |run| {
        for cause in &mut run.causes {
            if let FailureCause::Awaited { until, .. } = &mut cause.cause {
                until.get_or_insert(due);
            }
        }
    });
    builder.effect(Effect::FindCauses { run: id, sha, checks });
}

/// Runs failed checks again on the same candidate. What they reported before is void.
pub(super) fn run_again(builder: &mut TransitionBuilder, id: RunId, retry: Retry) {
    let Some(run) = builder.run(id) else { return };
    let (Some(candidate), Some(config_from)) =
        (run.candidate.clone(), builder.queue.header.target.head.clone())
    else {
        return;
    };
    let names: Vec<String> = retry.failed.iter().map(|check| check.name.clone()).collect();
    builder.change_run(id, |run| {
        for check in run.checks.iter_mut().filter(|check| names.contains(&check.name)) {
            check.status = CheckStatus::Queued;
            check.conclusion = None;
            check.summary = None;
        }
        run.causes.retain(|cause| !names.contains(&cause.check));
        run.retries.push(retry.clone());
    });
    for member in run.group.iter() {
        builder.change_entry(member.entry, |entry| {
            if matches!(entry.state, EntryState::Testing { run, .. } if run == id) {
                for class in &retry.classes {
                    entry.retries.count(*class);
                }
            }
        });
    }
    let hour_ago = builder.at.minus(Span::hours(1));
    let header = &mut builder.queue.header;
    header.retried.retain(|at| *at > hour_ago);
    header.retried.push(builder.at);
    let due = timeouts::built(builder);
    builder.change_run(id, |run| {
        run.deadline = due;
        run.first_check_at = None;
    });
    let prs = run.group.iter().map(|member| member.pr).collect();
    let again = retry.failed.clone();
    builder.decision(Decision::Retried { run: id, prs, retry });
    builder.effect(Effect::RunChecks(RunChecks {
        run: id,
        candidate,
        branch: run.branch.clone(),
        target: builder.queue.header.branch.clone(),
        config_from,
        prs: run.group.iter().map(|member| member.pr).collect(),
        required: run.own_checks(),
        again,
    }));
}
