//! Reports of impacted targets. A report may arrive before or after the push of its head.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha};
use signalbox_domain::ports::{PullRequestQuery, QueueRef, Repository};
use signalbox_domain::queue::{Command, ReportedTargets};
use signalbox_domain::token::{Caller, Scope};

use super::{Error, QueueService};

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
        let state = self.state(queue).await?;
        if let Some(entry) = state.as_ref().and_then(|state| state.entry_of(pr)) {
            if sha.is_some_and(|sha| entry.pull_request.head != *sha) {
                self.pull_request_hinted(repository.org, repository.id, pr).await?;
            }
            // The planner knows the head now.
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
}
