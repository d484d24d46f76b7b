//! Reruns that a report does not name.
//!
//! pytest-rerunfailures writes a case for every attempt, and what an attempt that was run again failed
//! with into none of them: it looks as if it had passed. Only the suite's count tells: it counts each
//! test once.

use std::collections::HashMap;

use signalbox_domain::flaky::{ReportedFailure, RunOutcome};
use signalbox_domain::upload::FoundRun;

use crate::convert::{self, Identity};
use crate::junit::Summary;

/// What is told of such a failure.
const MESSAGE: &str = "failed and was run again; the report does not say with what";

/// Marks attempts as failed that a later case of the same test follows, when the report has exactly as
/// many of them as it has cases beyond those that it counts.
pub(crate) fn mark(runs: &mut [FoundRun], summary: &Summary) {
    let beyond = summary.cases.saturating_sub(summary.declared);
    if summary.declared == 0 || beyond == 0 {
        return;
    }
    let mut last: HashMap<Identity, usize> = HashMap::new();
    let mut earlier = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        earlier.extend(last.insert(convert::identity(run), at));
    }
    let all_passed =
        earlier.iter().all(|at| runs.get(*at).is_some_and(|it| it.outcome == RunOutcome::Passed));
    if !all_passed || u64::try_from(earlier.len()).ok() != Some(beyond) {
        return;
    }
    for at in earlier {
        if let Some(run) = runs.get_mut(at) {
            run.outcome = RunOutcome::Failed;
            let (message, text) = (MESSAGE.to_owned(), String::new());
            run.failure = Some(ReportedFailure { message, text });
        }
    }
}
