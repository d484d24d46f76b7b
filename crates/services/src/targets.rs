//! Reported and computed impacted targets. A report may arrive before or after the push of its head.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha};
use signalbox_domain::ports::{GitHost, HostError, Leased, PullRequestQuery, QueueRef, Repository};
use signalbox_domain::queue::{
    Command, ComputedTargets, Header, PrState, Queue, ReportedTargets, TargetRules,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Scope};

use super::{Error, QueueService};

/// Minutes of failed calls after which all targets are impacted.
const PATIENCE_MINUTES: u32 = 30;

/// Computes the targets of a head by the rules of a queue.
pub(super) async fn compute(
    host: &dyn GitHost,
    repository: &Repository,
    queue: &Header,
    head: &Sha,
) -> Result<ComputedTargets, HostError> {
    let target = match &queue.target.head {
        Some(head) => Some(head.clone()),
        None => host.head(repository, &queue.branch).await?.map(|it| it.sha),
    };
    let Some(target) = target else {
        return Ok(ComputedTargets::incomplete("the target branch does not exist"));
    };
    let method = queue.settings.merge_method;
    let paths = host.changed_paths(repository, &target, head, method).await?;
    Ok(match TargetRules::new(&queue.settings.impacted_target_rules) {
        Ok(rules) => rules.computed(&paths),
        Err(invalid) => ComputedTargets::incomplete(invalid.to_string()),
    })
}

/// Returns all targets if the host refuses or has failed for half an hour, and the error otherwise. A pull
/// request in the line keeps its targets until the host answers.
pub(super) fn or_all_targets(
    queue: &Queue,
    leased: &Leased,
    pr: PrNumber,
    error: HostError,
    now: Timestamp,
) -> Result<ComputedTargets, HostError> {
    let patience = Span::minutes(PATIENCE_MINUTES);
    let is_late = leased.failing_since.is_some_and(|since| since.plus(patience) <= now);
    // A missing commit may be one that the host does not show yet.
    let may_pass = error.is_passing() || matches!(error, HostError::NotFound { .. });
    let is_in_line = queue.entry_of(pr).is_some_and(|it| it.state.name() != PrState::NotReady);
    if is_in_line || (may_pass && !is_late) {
        return Err(error);
    }
    Ok(ComputedTargets::host_failed(&error.to_string()))
}

impl QueueService {
    /// Reports the impacted targets of a pull request, which must exist on the host but need not be
    /// in the queue.
    ///
    /// A report for another head than the known one is either late or ahead of the push's delivery.
    /// The host is therefore read first, and a late report changes nothing.
    pub async fn set_targets(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        pr: PrNumber,
        targets: ReportedTargets,
    ) -> Result<(), Error> {
        let (repository, queue, _) =
            self.queue_of(caller, Scope::QueueSubmit, repo, branch).await?;
        if self.is_late(queue, &repository, pr, targets.sha.as_ref()).await? {
            return Ok(());
        }
        let command = Command::SetTargets { pr, targets };
        self.command(caller, Scope::QueueSubmit, &repository.name, branch, command).await.map(drop)
    }

    /// Whether a report for this head is late: the pull request has another head, for which targets
    /// are known. Fails if the pull request does not exist.
    async fn is_late(
        &self,
        queue: QueueRef,
        repository: &Repository,
        pr: PrNumber,
        sha: Option<&Sha>,
    ) -> Result<bool, Error> {
        if self.catches_up(queue, repository, pr, sha).await? {
            return Ok(false);
        }
        let host = self.git_host(repository)?;
        let shown = host.pull_request(repository, &PullRequestQuery::Number(pr)).await;
        let shown = shown
            .map_err(Error::Host)?
            .ok_or_else(|| Error::UnknownPullRequest { repo: repository.name.clone(), pr })?;
        let Some(sha) = sha.filter(|sha| shown.head != **sha) else { return Ok(false) };
        let known = self.context().stores.queues.targets(queue, pr).await?;
        let known = known.and_then(|known| known.sha);
        Ok(known.is_some_and(|known| known != *sha && known == shown.head))
    }

    /// Reads a pull request of the queue again if a report names another head than the queue knows.
    /// Returns whether it is in the queue.
    pub(super) async fn catches_up(
        &self,
        queue: QueueRef,
        repository: &Repository,
        pr: PrNumber,
        sha: Option<&Sha>,
    ) -> Result<bool, Error> {
        let state = self.state(queue).await?;
        let Some(entry) = state.as_ref().and_then(|state| state.entry_of(pr)) else {
            return Ok(false);
        };
        if sha.is_some_and(|sha| entry.pull_request.head != *sha) {
            self.pull_request_hinted(repository.org, repository.id, pr).await?;
        }
        Ok(true)
    }
}
