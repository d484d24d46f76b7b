//! What is known about the failure of a test in a merge queue's candidate: whether it says anything
//! about the changes under test.

use std::collections::BTreeSet;

use crate::ids::{PrNumber, Sha};
use crate::time::{Span, Timestamp};

use super::{
    BranchClass, Fingerprint, QuarantineCause, RunOutcome, RunRecord, Settings, TestCase,
    TestStatus,
};

/// Hours within which an equal failure without the changes counts.
pub const SEEN_WITHIN_HOURS: u32 = 24;

/// What is known about a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownFailure {
    /// The test is quarantined, by whom or what.
    Quarantined(QuarantineCause),
    /// The test is known to be flaky.
    Flaky,
    /// It has recently failed in the same way without the changes under test.
    SeenElsewhere {
        /// Whether the newest result of the target branch, of the last 24 hours, is such a failure.
        on_target: bool,
    },
    /// None of these.
    New,
}

/// A candidate under test.
#[derive(Clone, Copy, Debug)]
pub struct TestedChanges<'a> {
    /// Its commit.
    pub sha: &'a Sha,
    /// The target branch.
    pub target: &'a str,
    /// The pull requests that it contains.
    pub prs: &'a BTreeSet<PrNumber>,
    /// When its test run started; what was found out later may follow from this run itself.
    pub since: Timestamp,
}

/// Judges the failure of a test in a candidate. `runs`: recent runs of the test, this one possibly
/// among them.
pub fn known_failure(
    test: &TestCase,
    settings: &Settings,
    failure: &RunRecord,
    runs: &[RunRecord],
    changes: TestedChanges<'_>,
) -> KnownFailure {
    let since = changes.since;
    let quarantined_before = test.quarantined_since(settings, since).is_some_and(|it| it <= since);
    if let Some(cause) = test.quarantine_cause(settings, since).filter(|_| quarantined_before) {
        return KnownFailure::Quarantined(cause);
    }
    if test.standing.value == TestStatus::Flaky && test.standing.since <= since {
        return KnownFailure::Flaky;
    }
    let fingerprint = |run: &RunRecord| {
        let message = run.message.as_deref().filter(|message| !message.trim().is_empty());
        message.map(Fingerprint::of)
    };
    let Some(this) = fingerprint(failure) else { return KnownFailure::New };
    let first = since.minus(Span::hours(SEEN_WITHIN_HOURS));
    let is_without_changes = |run: &&RunRecord| {
        let is_other_code = run.sha.as_deref().is_some_and(|sha| sha != changes.sha.as_str());
        let is_unrelated = match run.class {
            BranchClass::Stable => true,
            BranchClass::PullRequest => run.pr.is_some_and(|pr| !changes.prs.contains(&pr)),
            // The candidate of another pull request may contain these changes.
            BranchClass::Merge | BranchClass::Other => false,
        };
        run.counts && run.outcome == RunOutcome::Failed && is_other_code && is_unrelated
    };
    let is_same =
        |run: &RunRecord| is_without_changes(&run) && fingerprint(run).as_ref() == Some(&this);
    if !runs.iter().any(|run| run.at > first && is_same(run)) {
        return KnownFailure::New;
    }
    let is_of_target = |run: &&RunRecord| {
        let is_result = run.counts && run.outcome != RunOutcome::Skipped && run.at > first;
        is_result && run.class == BranchClass::Stable && run.branch == changes.target
    };
    let newest = runs.iter().filter(is_of_target).max_by_key(|run| run.at);
    KnownFailure::SeenElsewhere { on_target: newest.is_some_and(is_same) }
}
