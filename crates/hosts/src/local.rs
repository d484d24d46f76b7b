//! Repositories on this server's own disk.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::{GitHost, HostError, Repository, Severity, StoredPullRequest};
use signalbox_domain::time::Span;
use thiserror::Error;

use crate::push::{PushAnswer, PushCommand, PushOptions};

/// A pull request to be opened from a branch.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// The source branch; later pushes to it update the pull request.
    pub branch: BranchName,
    /// The target branch.
    pub target: BranchName,
    /// The title; default: the subject of its head commit.
    pub title: Option<String>,
    /// Its description.
    pub body: Option<String>,
    /// The author; default: the author of its head commit.
    pub author: Option<String>,
}

/// A lock file that no process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleLock {
    /// The file.
    pub path: PathBuf,
    /// How long ago it was written.
    pub age: Span,
}

/// Why a hook was not installed.
#[derive(Debug, Error)]
pub enum HookError {
    /// A hook of another origin exists.
    #[error(
        "{0} already exists and is not a Signalbox hook; move it away, or register with --no-hooks"
    )]
    Foreign(String),
    /// The file could not be written.
    #[error("could not write the hook: {0}")]
    Io(#[from] std::io::Error),
    /// The repository could not be configured.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A problem of a repository, for `signalbox doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `Problem` when it stops the queues of the repository.
    pub severity: Severity,
    /// The problem, and what to do.
    pub sentence: String,
}

/// Bare repositories in folders of this server, whose pull requests are opened here.
#[async_trait]
pub trait LocalRepositories: Send + Sync {
    /// The same host for reading and writing branches. Its calls are not counted.
    fn git(&self) -> Arc<dyn GitHost>;

    /// Installs the hooks, each of which runs that program with `hook NAME` after its arguments.
    /// `false` when a `post-receive` hook of another origin was kept: pushes are then seen
    /// by the next sweep.
    async fn install_hooks(
        &self,
        repository: &Repository,
        program: &[String],
    ) -> Result<bool, HookError>;

    /// Opens a pull request from a branch.
    async fn open_pull_request(
        &self,
        repository: &Repository,
        request: OpenRequest,
    ) -> Result<StoredPullRequest, HostError>;

    /// Closes a pull request. `None` when there is none with that number.
    async fn close_pull_request(
        &self,
        repository: &Repository,
        number: PrNumber,
    ) -> Result<Option<StoredPullRequest>, HostError>;

    /// Handles a push to `refs/for/…`.
    async fn pushed(
        &self,
        repository: &Repository,
        commands: &[PushCommand],
        options: &PushOptions,
    ) -> Vec<PushAnswer>;

    /// Removes the locks that a killed process has left in a repository.
    async fn heal_locks(&self, repository: &Repository) -> Result<Vec<StaleLock>, HostError>;

    /// Kills and removes the left-overs of checks after a crash of their server. For the start of
    /// the only server that uses the host's folder.
    fn sweep_leftovers(&self);

    /// The folder of all repositories and why it cannot be read; `None` when it can, or when each
    /// repository has a path of its own.
    fn missing_root(&self) -> Option<String>;

    /// The most severe problem of a repository. Changes nothing.
    fn problem(&self, repository: &Repository) -> Option<Problem>;
}
