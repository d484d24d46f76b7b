//! The external CI of the small world.

use super::World;
use crate::ids::{PrNumber, RunId, Sha};
use crate::queue::{
    Check, CheckConclusion, CheckStatus, Command, Event, EventKind, ExternalReport, Refusal,
    Subject,
};

/// What the CI knows from the event of a test run with external checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalRequest {
    /// The run.
    pub run: RunId,
    /// The commit to test.
    pub sha: Sha,
    /// The pull requests under test.
    pub prs: Vec<PrNumber>,
    /// The checks to run.
    pub checks: Vec<String>,
}

impl ExternalRequest {
    pub(super) fn of(event: &Event) -> Option<Self> {
        let (EventKind::ChecksRequested, Some(run)) = (event.kind, &event.run) else { return None };
        let Subject::TestRun { prs, checks } = &event.subject else { return None };
        let (prs, checks) = (prs.clone(), checks.clone());
        Some(Self { run: run.id, sha: run.sha.clone()?, prs, checks })
    }
}

impl World {
    /// The CI runs the checks of a request, and reports them by the rules of this world.
    ///
    /// # Errors
    ///
    /// The first refusal; the CI stops there.
    pub fn report(&mut self, request: &ExternalRequest) -> Result<(), Refusal> {
        let mut passes = self.rules.passes(&self.commits[&request.sha].0);
        for pr in request.prs.iter().filter(|pr| self.rules.flaky.contains(&pr.0)) {
            passes &= !self.flaked.insert(pr.0);
        }
        let conclusion = if passes { CheckConclusion::Success } else { CheckConclusion::Failure };
        for check in &request.checks {
            self.report_as(request, check, Some(conclusion))?;
        }
        Ok(())
    }

    /// The CI reports a check of a request with a conclusion, or as running.
    ///
    /// # Errors
    ///
    /// The report is refused.
    pub fn report_as(
        &mut self,
        request: &ExternalRequest,
        check: &str,
        conclusion: Option<CheckConclusion>,
    ) -> Result<(), Refusal> {
        let is_completed = conclusion.is_some();
        let check = Check {
            name: check.to_owned(),
            status: if is_completed { CheckStatus::Completed } else { CheckStatus::InProgress },
            conclusion,
            url: "https://ci.example/1".to_owned(),
            summary: None,
            at: self.at,
            excused: Vec::new(),
        };
        let (run, sha, by) = (request.run, request.sha.clone(), self.caller());
        self.ask(Command::ReportCheck(Box::new(ExternalReport { run, sha, check, by })))
    }
}
