//! Reports of impacted targets without a token, authenticated by a workflow run of a fork.

use std::net::IpAddr;
use std::sync::PoisonError;

use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::ports::{PullRequestQuery, Repository};
use signalbox_domain::queue::{Command, Input, PullRequestState, ReportedTargets};
use signalbox_domain::time::Span;

use super::step::Step;
use super::{Error, HintService, network_of};

/// The most lookups of workflow runs per minute, because this endpoint needs no token and each takes
/// from the calls that the git host allows.
const LOOKUPS_PER_MINUTE: usize = 30;
/// Of these, lookups for one address.
const LOOKUPS_OF_ADDRESS: usize = 10;

/// A report without a token.
#[derive(Clone, Debug)]
pub struct ForkReport {
    /// The repository.
    pub repo: RepoName,
    /// The branch of the queue.
    pub branch: BranchName,
    /// The pull request.
    pub pr: PrNumber,
    /// The targets; the head is required.
    pub targets: ReportedTargets,
    /// The id of the workflow run that sends the report.
    pub workflow_run: u64,
    /// The client.
    pub from: IpAddr,
}

impl HintService {
    /// Accepts a report if the host confirms its workflow run: the run is live, belongs to a pull
    /// request from a fork of this repository, and runs for the reported commit, which is the pull
    /// request's head. A run can report once per queue.
    ///
    /// Returns `false` if the run is not confirmed, without the cause.
    pub async fn targets_from_fork(&self, report: &ForkReport) -> Result<bool, Error> {
        if report.targets.sha.is_none() {
            return Ok(false);
        }
        let mut taken = false;
        for repository in self.connected(&report.repo).await? {
            taken |= self.take_in_report(&repository, report).await?;
        }
        Ok(taken)
    }

    async fn take_in_report(
        &self,
        repository: &Repository,
        report: &ForkReport,
    ) -> Result<bool, Error> {
        let (org, host) = (repository.org, &repository.name.host);
        let Some(forge) = self.context.hosts.forge(org, host) else { return Ok(false) };
        let queue = match self.queues.find(org, repository, &report.branch).await {
            Ok(queue) => queue,
            Err(Error::UnknownQueue { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let ForkReport { pr, workflow_run, .. } = report;
        let used = format!("run {workflow_run} {} {pr}", queue.id);
        if self.inbound_deliveries.was_taken(org, host, &used).await? {
            return Ok(false);
        }
        if !self.may_look_up(report.from) {
            return Err(Error::Busy);
        }
        let run = forge.workflow_run(repository, *workflow_run).await.map_err(Error::Host)?;
        let sha = report.targets.sha.as_ref();
        if !run.is_some_and(|run| run.live && run.from_fork && Some(&run.head) == sha) {
            return Ok(false);
        }
        let git = self.queues.git_host(repository)?;
        let shown = git.pull_request(repository, &PullRequestQuery::Number(*pr)).await;
        let is_head = shown
            .map_err(Error::Host)?
            .is_some_and(|it| Some(&it.head) == sha && it.state == PullRequestState::Open);
        if !is_head {
            return Ok(false);
        }
        self.queues.catches_up(queue, repository, *pr, sha).await?;
        let command = Command::SetTargets { pr: *pr, targets: report.targets.clone() };
        self.queues
            .step(queue, repository, &report.branch, Step::new(Input::Command(command)))
            .await?;
        let now = self.context.clock.now();
        self.inbound_deliveries.taken(org, host, &used, now).await?;
        Ok(true)
    }

    /// Counts a lookup; returns whether the limits of the last minute allow it.
    fn may_look_up(&self, from: IpAddr) -> bool {
        let now = self.context.clock.now();
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        while lookups.front().is_some_and(|(at, _)| *at < now.minus(Span::minutes(1))) {
            lookups.pop_front();
        }
        let from = network_of(from);
        let own = lookups.iter().filter(|(_, of)| *of == from).count();
        let few = lookups.len() < LOOKUPS_PER_MINUTE && own < LOOKUPS_OF_ADDRESS;
        if few {
            lookups.push_back((now, from));
        }
        few
    }

    /// The repositories of this name on hosts with webhooks, of all organizations.
    async fn connected(&self, name: &RepoName) -> Result<Vec<Repository>, Error> {
        let mut found = Vec::new();
        for (org, _) in self.context.hosts.webhook_decoders(&name.host) {
            found.extend(self.context.repositories.named(org, name).await?);
        }
        Ok(found)
    }
}
