//! Failures that count after all, or no longer.

use std::collections::BTreeMap;

use super::super::intake::of_upload;
use super::super::{Run, RunOutcome, RunRecord, SameCode, Summary, TestId};
use super::IncidentId;
use crate::ids::Sha;
use crate::time::Timestamp;

/// Failures of a test that are no longer excluded because of an incident, or are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    /// The test.
    pub test: TestId,
    /// The incident.
    pub incident: IncidentId,
    /// When the incident began.
    pub since: Timestamp,
    /// Whether the failures count from now on.
    pub counts: bool,
    /// The failures.
    pub failures: Summary,
    /// The last failure of the test that counts after this.
    pub last_failure_at: Option<Timestamp>,
}

/// The failing runs of tests, in the form that is counted.
pub fn failures_of(runs: &[RunRecord]) -> BTreeMap<TestId, Summary> {
    let mut by_test: BTreeMap<TestId, Vec<Run>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.outcome == RunOutcome::Failed) {
        let commit = run.sha.as_ref().and_then(|sha| Sha::new(sha.clone()).ok());
        let upload = || SameCode::Upload(run.upload.to_string());
        let origin = run.origin.unwrap_or_default();
        let beside = of_upload(commit.is_some() && !origin.is_complete(), run.upload);
        by_test.entry(run.test).or_default().push(Run {
            at: run.at,
            branch: run.branch.clone(),
            class: run.class,
            codes: [commit.map_or_else(upload, SameCode::Commit)]
                .into_iter()
                .chain(beside)
                .collect(),
            origin,
            passed: false,
        });
    }
    by_test.into_iter().map(|(test, runs)| (test, Summary::of(&runs))).collect()
}
