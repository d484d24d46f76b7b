//! The timeouts of test runs. The test timeout counts from the start of the first check, but the wait
//! for that start is bounded, too: a job that CI has queued is slow, and has not failed.

use crate::ids::RunId;
use crate::time::{Span, Timestamp};

use super::super::{Header, TestFailure, TestRun};
use super::builder::TransitionBuilder;
use super::checks;

/// The number of passing runs from which an automatic test timeout follows.
const KNOWN_RUNS: usize = 20;
/// The most passing runs that are remembered.
const REMEMBERED_RUNS: usize = 50;
/// The shortest automatic test timeout, in seconds.
const SHORTEST_SECONDS: u32 = 300;

/// How long the checks of a run may take.
struct TestTimeout {
    span: Span,
    /// Whether it follows from passing runs.
    automatic: bool,
}

/// The test timeout in force; `None` without one.
fn test_timeout(header: &Header) -> Option<TestTimeout> {
    let settings = &header.settings;
    let minutes = settings.testing_timeout_minutes;
    let fixed = (minutes > 0).then(|| Span::minutes(minutes));
    let known = &header.passed_in;
    if !settings.automatic_testing_timeout || known.len() < KNOWN_RUNS {
        return fixed.map(|span| TestTimeout { span, automatic: false });
    }
    let mut sorted = known.clone();
    sorted.sort_unstable();
    let slow = sorted.get(sorted.len() * 95 / 100).or(sorted.last()).copied().unwrap_or(0);
    let span = Span::seconds(slow.saturating_add(slow / 2).max(SHORTEST_SECONDS));
    let span = fixed.map_or(span, |fixed| fixed.min(span));
    Some(TestTimeout { span, automatic: true })
}

/// The deadline of a run whose checks can start now, or start again. A check that is never
/// reported may not exist, so that silence counts as running, unless the timeout is automatic and
/// may be shorter than the time to the first report.
pub(super) fn built(builder: &TransitionBuilder) -> Option<Timestamp> {
    let header = &builder.queue.header;
    let start = Span::minutes(header.settings.start_timeout_minutes);
    test_timeout(header).map(|timeout| {
        let wait = if timeout.automatic { start } else { Span::ZERO };
        builder.at.plus(wait).plus(timeout.span)
    })
}

/// Sets the deadline of a run once CI has queued its checks, or the first of them has started.
pub(super) fn reported(builder: &TransitionBuilder, run: &mut TestRun) {
    if run.first_check_at.is_some() {
        return;
    }
    let header = &builder.queue.header;
    let Some(timeout) = test_timeout(header) else { return };
    if run.has_started() {
        run.first_check_at = Some(builder.at);
        run.deadline = Some(builder.at.plus(timeout.span));
    } else if run.queued().is_some() {
        let start = Span::minutes(header.settings.start_timeout_minutes);
        let since = run.retrying().map(|retry| retry.at).or(run.built_at).unwrap_or(builder.at);
        // An outage of the host has moved the deadline; it never moves back.
        run.deadline = run.deadline.max(Some(since.plus(start).plus(timeout.span)));
    }
}

/// Fails a run that is late.
pub(super) fn enforce(builder: &mut TransitionBuilder, id: RunId) {
    let Some(run) = builder.run(id).filter(|run| run.status.is_running()) else { return };
    if run.deadline.is_none_or(|due| due > builder.at) {
        return;
    }
    let since = run.first_check_at.or(run.built_at).unwrap_or(run.started_at);
    let minutes = builder.at.since(since).micros() / Span::minutes(1).micros();
    let details = match (run.built_at, run.first_check_at) {
        (Some(_), None) => format!("no check has started within {minutes} minutes"),
        (Some(_) | None, _) => format!("no result within {minutes} minutes"),
    };
    checks::fail(builder, id, TestFailure::Timeout, &[details]);
}

/// Remembers how long a passing run took, while the test timeout is automatic.
pub(super) fn passed(builder: &mut TransitionBuilder, id: RunId) {
    if !builder.queue.header.settings.automatic_testing_timeout {
        builder.queue.header.passed_in.clear();
        return;
    }
    let Some(started) = builder.run(id).and_then(|run| run.first_check_at) else { return };
    let seconds = builder.at.since(started).micros() / Span::seconds(1).micros();
    let known = &mut builder.queue.header.passed_in;
    known.push(u32::try_from(seconds).unwrap_or(u32::MAX));
    let surplus = known.len().saturating_sub(REMEMBERED_RUNS);
    known.drain(..surplus);
}
