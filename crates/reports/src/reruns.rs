//! Reruns that a report does not name.
//!
//! pytest-rerunfailures writes a case for every attempt, and what an attempt that was run again
//! failed with into none of them: it looks as if it had passed. pytest reports each test of a run
//! apart, so a case that another one of the same test follows in its only suite was run again. Its
//! count has fewer tests than there are cases then; with as many, each test was meant to run more
//! than once.

use std::collections::HashMap;

use signalbox_domain::flaky::{ReportedFailure, RunOutcome};
use signalbox_domain::upload::FoundRun;

use crate::convert::{self, Identity};
use crate::junit::Summary;

/// The message of such a failure.
const MESSAGE: &str = "failed and was run again; the report has no message";

/// Marks attempts of a report by pytest as failed that a later case of the same test follows.
pub(crate) fn mark(runs: &mut [FoundRun], summary: &Summary) {
    let reruns = summary.declared > 0 && summary.cases > summary.declared;
    if !summary.pytest || summary.suites != 1 || !reruns {
        return;
    }
    let mut last: HashMap<Identity, usize> = HashMap::new();
    let mut earlier = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        earlier.extend(last.insert(convert::identity(run), at));
    }
    for at in earlier {
        if let Some(run) = runs.get_mut(at).filter(|it| it.outcome == RunOutcome::Passed) {
            run.outcome = RunOutcome::Failed;
            let (message, text) = (MESSAGE.to_owned(), String::new());
            run.failure = Some(ReportedFailure { message, text });
        }
    }
}
