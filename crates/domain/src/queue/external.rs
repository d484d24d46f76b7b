//! External checks: an external CI runs them, and reports their states through the API.

use crate::ids::{RunId, Sha};

use super::{Actor, CheckReport, CheckStatus, Refusal, RunStatus, TestRun};

/// The state of an external check, as the CI that runs it reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExternalReport {
    /// The test run.
    pub run: RunId,
    /// The commit that the CI tested; must be the candidate of the run.
    pub sha: Sha,
    /// The check and its state.
    pub check: CheckReport,
    /// The caller, recorded in the journal.
    pub by: Actor,
}

impl TestRun {
    /// The external checks that it requires.
    pub fn external(&self) -> &[String] {
        self.required.as_ref().map(|required| required.external.as_slice()).unwrap_or_default()
    }

    /// The required checks that are not external, in the order of their names.
    pub(super) fn own_checks(&self) -> Vec<String> {
        let names = self.required.iter().flat_map(|required| &required.names);
        names.filter(|name| !self.external().contains(name)).cloned().collect()
    }

    /// Whether a report of an external check changes this run; `false` for a repeated report, and
    /// for one that another report has overtaken. The first conclusion of a check is final.
    ///
    /// # Errors
    ///
    /// The report names another commit, a check that is not external, or a check that completed
    /// with another conclusion, or the run has ended.
    pub fn accepts(&self, report: &ExternalReport) -> Result<bool, Refusal> {
        let (run, check) = (self.id, &report.check);
        let tested = self.candidate.as_ref().map(|candidate| &candidate.sha);
        if tested != Some(&report.sha) {
            let (given, tested) = (report.sha.clone(), tested.cloned());
            return Err(Refusal::OtherCommit { run, given, tested });
        }
        if !self.external().contains(&check.name) {
            let external = self.external().to_vec();
            return Err(Refusal::NotExternal { run, check: check.name.clone(), external });
        }
        let known = self.checks.iter().find(|known| known.name == check.name);
        if let Some(conclusion) = known.and_then(|known| known.conclusion) {
            if check.conclusion == Some(conclusion) {
                return Ok(false);
            }
            let check = check.name.clone();
            return Err(Refusal::CheckCompleted { run, check, conclusion });
        }
        if self.status != RunStatus::Testing {
            return Err(Refusal::RunEnded { run, status: self.status.clone() });
        }
        Ok(known.is_none_or(|known| {
            let is_same = (&known.url, &known.summary) == (&check.url, &check.summary);
            known.status < check.status || (known.status == check.status && !is_same)
        }))
    }

    /// Records an accepted report.
    pub(super) fn record(&mut self, report: CheckReport) {
        match self.checks.iter_mut().find(|known| known.name == report.name) {
            Some(known) => *known = report,
            None => self.checks.push(report),
        }
    }
}

impl ExternalReport {
    /// Whether it completes its check without success.
    pub fn is_failure(&self) -> bool {
        let is_completed = self.check.status == CheckStatus::Completed;
        is_completed && self.check.conclusion.is_none_or(|conclusion| !conclusion.is_success())
    }
}
