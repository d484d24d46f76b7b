//! The error of the services.

use thiserror::Error;

use signalbox_domain::flaky::{IncidentId, TestId};
use signalbox_domain::ids::{BranchName, PrNumber, RepoName, RunId};
use signalbox_domain::ports::{HostError, StoreError};
use signalbox_domain::queue::Refusal;
use signalbox_domain::token::Scope;
use signalbox_simulator::SimulationError;

use super::{UploadError, WebhookError};

/// The error of the services. Refusals and missing objects are errors of the caller; outages and
/// database errors concern the operator.
#[derive(Debug, Error)]
pub enum Error {
    /// The planner refused the command.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The rules of flaky tests refused the command.
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
    /// The organization has no such repository, or the token may not access it.
    #[error("repository {0} not found")]
    UnknownRepository(RepoName),
    /// The branch has no queue.
    #[error("merge queue for branch `{branch}` of {}/{} not found", repo.owner, repo.name)]
    UnknownQueue {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
    },
    /// The branch already has a queue.
    #[error("merge queue for branch `{branch}` of {}/{} already exists", repo.owner, repo.name)]
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
    /// The pull request was never submitted to the queue.
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
    /// The token lacks a scope.
    #[error("this token lacks the scope {}", .0.as_str())]
    MissingScope(Scope),
    /// The upload was rejected.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// An operation on webhooks was refused.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// The host did not answer or refused.
    #[error("could not reach the git host")]
    Host(#[source] HostError),
    /// The queue was changed concurrently too many times.
    #[error("the merge queue is too busy: it was changed concurrently too many times")]
    Busy,
    /// The server runs two simulations at a time, and one for an organization.
    #[error("another simulation is running; try again in a few seconds")]
    Simulating,
    /// The history of a queue cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The issuer of an identity token did not answer: nothing is known about the token.
    #[error("could not reach the issuer of the identity token: {0}")]
    Issuer(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
