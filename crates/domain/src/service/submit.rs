//! Submitting: the one command that carries what was read elsewhere, which may be out of date by
//! the time that it is decided on.

use crate::ids::{BranchName, PrNumber, RepoName};
use crate::ports::PullRequestQuery;
use crate::queue::{Command, Input, Priority, Queue, Submission, SubmitReason};
use crate::token::{Caller, Scope};

use super::{Error, QueueService};

/// How often the host is asked for a pull request while landings make its answers old.
const READS: u32 = 8;

impl QueueService {
    /// Puts a pull request into the queue, or changes its priority there.
    pub async fn submit(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        pr: PrNumber,
        priority: Option<Priority>,
        no_batch: Option<bool>,
    ) -> Result<(), Error> {
        if priority.is_some_and(Priority::is_urgent) && !caller.may(Scope::QueueUrgent) {
            return Err(Error::MissingScope(Scope::QueueUrgent));
        }
        let repository = self.repository(caller, Scope::QueueSubmit, repo).await?;
        let queue = self.find(caller.org, &repository, branch).await?;
        let host = self.git_host(&repository)?;
        for _ in 0..READS {
            let read_at = self.context().clock.now();
            let pull_request = host
                .pull_request(&repository, &PullRequestQuery::Number(pr))
                .await
                .map_err(Error::Host)?
                .ok_or_else(|| Error::UnknownPullRequest { repo: repository.name.clone(), pr })?;
            let command = Command::Submit(Box::new(Submission {
                pull_request,
                read_at,
                targets: None,
                priority,
                no_batch,
                reason: SubmitReason::ApiRequested,
                by: caller.actor(),
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
}
