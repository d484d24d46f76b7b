//! Submitting: the one command that carries what was read elsewhere, which may be out of date by
//! the time that it is decided on.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::ports::{GitHost, PullRequestQuery, QueueRef, Repository};
use signalbox_domain::queue::{
    Actor, Command, Fact, Input, Priority, Queue, Submission, SubmitReason,
};
use signalbox_domain::token::{Caller, Scope};

use super::{Error, QueueService};

/// How often the host is asked for a pull request while landings make its answers old.
const READS: u32 = 8;

/// How a pull request is to be queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// `None`: the default for a new entry, no change for a live one.
    pub priority: Option<Priority>,
    /// Whether it must be tested alone; `None` as for `priority`.
    pub no_batch: Option<bool>,
    /// Whether it enters the line whatever the host says about merging it. A caller of the API cannot
    /// ask for that.
    pub force: bool,
}

impl QueueService {
    /// Puts a pull request into the queue, or changes its priority there.
    pub async fn submit(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        pr: PrNumber,
        options: SubmitOptions,
    ) -> Result<(), Error> {
        if options.priority.is_some_and(Priority::is_urgent) && !caller.may(Scope::QueueUrgent) {
            return Err(Error::MissingScope(Scope::QueueUrgent));
        }
        let repository = self.repository(caller, Scope::QueueSubmit, repo).await?;
        let options = SubmitOptions { force: false, ..options };
        let by = (SubmitReason::ApiRequested, caller.actor());
        self.submit_as(&repository, branch, pr, options, by).await
    }

    /// The same for an actor whose rights were checked elsewhere, with how the request came.
    pub(super) async fn submit_as(
        &self,
        repository: &Repository,
        branch: &BranchName,
        pr: PrNumber,
        options: SubmitOptions,
        (reason, by): (SubmitReason, Actor),
    ) -> Result<(), Error> {
        let queue = self.find(repository.org, repository, branch).await?;
        let host = self.git_host(repository)?;
        self.refresh_target(queue, repository, host.as_ref()).await?;
        for _ in 0..READS {
            let read_at = self.context().clock.now();
            let pull_request = host
                .pull_request(repository, &PullRequestQuery::Number(pr))
                .await
                .map_err(Error::Host)?
                .ok_or_else(|| Error::UnknownPullRequest { repo: repository.name.clone(), pr })?;
            let command = Command::Submit(Box::new(Submission {
                pull_request,
                read_at,
                targets: None,
                priority: options.priority,
                no_batch: options.no_batch,
                force: options.force,
                reason,
                by: by.clone(),
            }));
            // What landed since the host was asked may be this pull request: it is asked again.
            let out_of_date = |queue: &Queue| {
                let moved_at = queue.header.target.seen_at;
                queue.entry_of(pr).is_none() && moved_at.is_some_and(|at| at > read_at)
            };
            let input = Input::Command(command);
            match self.stepper.step_unless(queue, &input, None, out_of_date).await? {
                Some((_, true)) => return Ok(()),
                Some((_, false)) => {}
                None => {
                    let repo = repository.name.clone();
                    return Err(Error::UnknownQueue { repo, branch: branch.clone() });
                }
            }
        }
        Err(Error::Busy)
    }

    /// Reads the target of a queue without entries on a host that must be polled: there it is read
    /// rarely, and the first candidate is to be built on what the branch is now. A host that does
    /// not answer is asked again by the queue itself.
    async fn refresh_target(
        &self,
        queue: QueueRef,
        repository: &Repository,
        host: &dyn GitHost,
    ) -> Result<(), Error> {
        let Some(state) = self.state(queue).await? else { return Ok(()) };
        let (header, is_idle) = (&state.header, state.entries_in_order().next().is_none());
        if !is_idle || !host.abilities().needs_polling {
            return Ok(());
        }
        let read_at = self.context().clock.now();
        match host.head(repository, &header.branch).await {
            Ok(Some(head))
                if header.target.missing || header.target.head != Some(head.sha.clone()) =>
            {
                let fact = Fact::TargetSeen { head: head.sha, tree: head.tree, read_at };
                self.absorb(queue, fact).await
            }
            Ok(None) if !header.target.missing => self.absorb(queue, Fact::TargetMissing).await,
            Ok(Some(_) | None) | Err(_) => Ok(()),
        }
    }
}
