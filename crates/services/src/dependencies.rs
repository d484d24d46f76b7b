//! The states of dependencies, read from the host.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{GitHost, HostError, PullRequestQuery, Repository};
use signalbox_domain::queue::{Dependency, DependencyState, PullRequest, PullRequestState};

use super::{Error, QueueContext};

/// Reads the state of a dependency of a pull request of this repository.
///
/// Only repositories of the same organization are read. An error means that the host did not answer. A
/// dependency that the server may not read is missing.
pub(super) async fn read(
    context: &QueueContext,
    host: &dyn GitHost,
    repository: &Repository,
    on: &Dependency,
) -> Result<Result<DependencyState, HostError>, Error> {
    match on {
        Dependency::Own(pr) => state(context, host, repository, *pr).await,
        Dependency::Other(name, pr) => {
            match context.repositories.named(repository.org, name).await? {
                Some(other) => match state(context, host, &other, *pr).await? {
                    Err(HostError::AccessDenied { .. }) => Ok(Ok(DependencyState::Missing)),
                    state => Ok(state),
                },
                None => Ok(Ok(DependencyState::Missing)),
            }
        }
        Dependency::Unknown(_) => Ok(Ok(DependencyState::Missing)),
    }
}

async fn state(
    context: &QueueContext,
    host: &dyn GitHost,
    repository: &Repository,
    pr: PrNumber,
) -> Result<Result<DependencyState, HostError>, Error> {
    let seen = match host.pull_request(repository, &PullRequestQuery::Number(pr)).await {
        Ok(Some(seen)) => seen,
        Ok(None)
        | Err(
            HostError::Rejected { .. } | HostError::NotFound { .. } | HostError::Conflict { .. },
        ) => {
            return Ok(Ok(DependencyState::Missing));
        }
        Err(error) => return Ok(Err(error)),
    };
    let has_merged =
        seen.state != PullRequestState::Merged && landed(context, repository, &seen).await?;
    Ok(Ok(if has_merged { DependencyState::Merged } else { seen.state.into() }))
}

/// Whether a queue of the repository has landed a pull request as the host shows it. A host may show one
/// that was landed with new commits as closed, or as open until it is closed.
async fn landed(
    context: &QueueContext,
    repository: &Repository,
    seen: &PullRequest,
) -> Result<bool, Error> {
    let stores = &context.stores;
    for key in stores.queues.list(Some(repository.org), Some(repository.id)).await? {
        let entry = stores.reads.entry(key.queue, seen.number).await?;
        if entry.is_some_and(|entry| entry.has_merged_with(&seen.head)) {
            return Ok(true);
        }
    }
    Ok(false)
}
