//! Submissions. A submission contains a pull request that was read from the host, which may be out
//! of date when the planner decides.

use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::ports::{GitHost, PullRequestQuery, QueueRef, Repository, Version};
use signalbox_domain::queue::{
    Actor, Command, Fact, Input, Priority, Queue, Submission, SubmitReason,
};
use signalbox_domain::token::{Caller, Scope};

use super::step::{Seen, Step};
use super::{Error, QueueService};

/// The most reads of a pull request while concurrent landings make them out of date.
const READS: u32 = 8;

/// The options of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// `None` gives a new entry the default and leaves a live one unchanged.
    pub priority: Option<Priority>,
    /// Whether it must be tested alone; `None` has the same meaning as for `priority`.
    pub no_batch: Option<bool>,
    /// Whether it enters the line even if the host reports it as not mergeable. Not available in
    /// the API.
    pub force: bool,
}

impl QueueService {
    /// Submits a pull request, or changes the priority of a live entry.
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
        let (repository, queue, version, targets) =
            self.queue_with_targets(caller, Scope::QueueSubmit, repo, branch, Some(pr)).await?;
        let options = SubmitOptions { force: false, ..options };
        let by = (SubmitReason::ApiRequested, caller.actor());
        let queue = (queue, Some(Seen { version, targets }));
        self.submit_to(queue, &repository, branch, pr, options, by).await
    }

    /// Submits a pull request for a user who may push to its repository.
    pub async fn submit_for_pusher(
        &self,
        repository: &Repository,
        branch: &BranchName,
        pr: PrNumber,
        pusher: &str,
    ) -> Result<(), Error> {
        let by = (SubmitReason::UserRequested, Actor::User(pusher.to_owned()));
        self.submit_as(repository, branch, pr, SubmitOptions::default(), by).await
    }

    /// Submits for an actor whose permissions are already checked, with the channel of the request.
    pub(super) async fn submit_as(
        &self,
        repository: &Repository,
        branch: &BranchName,
        pr: PrNumber,
        options: SubmitOptions,
        by: (SubmitReason, Actor),
    ) -> Result<(), Error> {
        let queue = self.find(repository.org, repository, branch).await?;
        self.submit_to((queue, None), repository, branch, pr, options, by).await
    }

    /// Submits to a queue whose version and targets are given if they have just been read.
    async fn submit_to(
        &self,
        (queue, seen): (QueueRef, Option<Seen>),
        repository: &Repository,
        branch: &BranchName,
        pr: PrNumber,
        options: SubmitOptions,
        (reason, by): (SubmitReason, Actor),
    ) -> Result<(), Error> {
        let host = self.git_host(repository)?;
        let version = seen.as_ref().map(|seen| seen.version);
        self.refresh_target((queue, version), repository, host.as_ref()).await?;
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
            // A landing since the read may be this pull request: read it again.
            let out_of_date = move |queue: &Queue| {
                let moved_at = queue.header.target.seen_at;
                queue.entry_of(pr).is_none() && moved_at.is_some_and(|at| at > read_at)
            };
            let mut step = Step::new(Input::Command(command)).unless(out_of_date);
            if let Some(Seen { version, targets }) = &seen {
                step = step.seen(*version, targets.clone());
            }
            match self.stepper.execute(queue, step).await? {
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

    /// Reads the target of a queue without entries on a host that must be polled. Such a target is
    /// read rarely, and the first candidate must be built on the present head. If the host does not
    /// answer, the queue repeats the read.
    async fn refresh_target(
        &self,
        (queue, version): (QueueRef, Option<Version>),
        repository: &Repository,
        host: &dyn GitHost,
    ) -> Result<(), Error> {
        if !host.abilities().needs_polling {
            return Ok(());
        }
        let state = match version {
            Some(version) => self.stepper.at(queue, version).await?,
            None => self.state(queue).await?,
        };
        let Some(state) = state else { return Ok(()) };
        let (header, is_idle) = (&state.header, state.entries_in_order().next().is_none());
        if !is_idle {
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
