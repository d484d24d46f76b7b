//! Reports of external checks.

use signalbox_domain::ids::{BranchName, RepoName, RunId, Sha};
use signalbox_domain::queue::{
    CheckConclusion, CheckReport, CheckStatus, Command, ExternalReport, Input, Refusal,
};
use signalbox_domain::token::{Caller, Scope};

use super::step::Step;
use super::{Error, QueueService};

/// The state of an external check as a CI reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// The test run.
    pub run: RunId,
    /// The commit that the CI tested.
    pub sha: Sha,
    /// The name of the check.
    pub check: String,
    /// Its status.
    pub status: CheckStatus,
    /// Its conclusion, once completed.
    pub conclusion: Option<CheckConclusion>,
    /// The URL of its details; may be empty.
    pub url: String,
    /// One line of detail.
    pub summary: Option<String>,
}

impl QueueService {
    /// Records the state of an external check. A repeated report has no effect, also after the run
    /// has ended.
    ///
    /// # Errors
    ///
    /// See [`TestRun::accepts`](signalbox_domain::queue::TestRun::accepts) for refused reports.
    pub async fn report_check(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        result: CheckResult,
    ) -> Result<(), Error> {
        let (repository, queue, _) =
            self.queue_of(caller, Scope::ChecksReport, repo, branch).await?;
        let CheckResult { run: id, sha, check: name, status, conclusion, url, summary } = result;
        let at = self.context().clock.now();
        let check = CheckReport { name, status, conclusion, url, summary, at, excused: Vec::new() };
        let report = ExternalReport { run: id, sha, check, by: caller.actor() };
        let unknown = || Error::UnknownRun { repo: repo.clone(), branch: branch.clone(), run: id };
        let state = self.state(queue).await?;
        if let Some(run) = state.as_ref().and_then(|state| state.run(id)) {
            if !run.accepts(&report)? {
                return Ok(());
            }
            if report.is_failure() {
                self.reread_target(queue).await?;
            }
            let input = Input::Command(Command::ReportCheck(Box::new(report.clone())));
            match self.step(queue, &repository, branch, Step::new(input)).await {
                // The run has ended meanwhile.
                Err(Error::Refused(Refusal::UnknownRun { .. })) => {}
                answer => return answer.map(drop),
            }
        }
        let ended = self.context().stores.reads.run(queue, id).await?.ok_or_else(unknown)?;
        if ended.accepts(&report)? { Err(unknown()) } else { Ok(()) }
    }
}
