//! Why a use case did not do what was asked.

use thiserror::Error;

use signalbox_domain::flaky::{IncidentId, TestId};
use signalbox_domain::ids::{BranchName, PrNumber, RepoName, RunId};
use signalbox_domain::ports::{HostError, StoreError};
use signalbox_domain::queue::Refusal;
use signalbox_domain::token::Scope;

use super::{UploadError, WebhookError};

/// Why a use case did not do what was asked. Refused and not found are the caller's business, the
/// rest is the operator's.
#[derive(Debug, Error)]
pub enum Error {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The rules of flaky tests say no.
    #[error(transparent)]
    FlakyRefused(#[from] signalbox_domain::flaky::Refusal),
    /// The repository has no such test.
    #[error("test {test} of {}/{} not found", repo.owner, repo.name)]
    UnknownTest {
        /// The repository.
        repo: RepoName,
        /// The test.
        test: TestId,
    },
    /// The repository has no such incident.
    #[error("incident {incident} of {}/{} not found", repo.owner, repo.name)]
    UnknownIncident {
        /// The repository.
        repo: RepoName,
        /// The incident.
        incident: IncidentId,
    },
    /// The organization has no such repository, or the token may not see it.
    #[error("repository {0} not found")]
    UnknownRepository(RepoName),
    /// The repository has no queue for that branch.
    #[error("merge queue for branch `{branch}` of {}/{} not found", repo.owner, repo.name)]
    UnknownQueue {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
    },
    /// The repository has a queue for that branch already.
    #[error("there is already a merge queue for branch `{branch}` of {}/{}", repo.owner, repo.name)]
    QueueExists {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
    },
    /// The host has no such pull request.
    #[error("pull request {pr} of {}/{} not found", repo.owner, repo.name)]
    UnknownPullRequest {
        /// The repository.
        repo: RepoName,
        /// The pull request.
        pr: PrNumber,
    },
    /// The pull request was never in that queue.
    #[error("{what} of {}/{} was never submitted to the merge queue for branch `{branch}`", repo.owner, repo.name)]
    NeverSubmitted {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
        /// `pull request 7` or `a pull request from branch fix`.
        what: String,
    },
    /// The queue has no such test run.
    #[error("test run {run} not found in the merge queue for branch `{branch}` of {}/{}", repo.owner, repo.name)]
    UnknownRun {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
        /// The run.
        run: RunId,
    },
    /// The token may not do that.
    #[error("this token lacks the scope {}", .0.as_str())]
    MissingScope(Scope),
    /// The upload was not taken.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// What was asked of webhooks was refused.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// The host did not answer or refused.
    #[error("the git host could not be asked")]
    Host(#[source] HostError),
    /// Too many others changed the queue at the same moment.
    #[error("the merge queue is too busy")]
    Busy,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
