//! Forges: hosts with pull requests, comments, labels, statuses and permissions.

use async_trait::async_trait;

use crate::ids::{BranchName, PrNumber, Sha};
use crate::ports::{HostError, Repository};
use crate::time::Timestamp;

/// A user's permission in a repository, as reported by the host; ordered from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// No access.
    None,
    /// May read it.
    Read,
    /// May push to it.
    Write,
    /// May change its settings.
    Admin,
}

/// A comment on a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The pull request.
    pub pr: PrNumber,
    /// The login of its author.
    pub author: String,
    /// Its text.
    pub body: String,
    /// When it was written.
    pub created_at: Timestamp,
}

/// The state of a commit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusState {
    /// The pull request is in the queue.
    Pending,
    /// It has landed.
    Success,
    /// It has left the queue without landing.
    Failure,
}

/// A commit status on a pull request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusNote {
    /// The commit.
    pub sha: Sha,
    /// The state.
    pub state: StatusState,
    /// One line of text; hosts show at most 140 characters.
    pub description: String,
}

/// What the queue shows on a pull request. Announcing the same again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The pull request.
    pub pr: PrNumber,
    /// The name of the queue: its target branch. Statuses and comments of different queues are
    /// different.
    pub queue: BranchName,
    /// The status; `None` leaves it unchanged.
    pub status: Option<StatusNote>,
    /// The text of the queue's single comment, in Markdown; text from users is escaped by
    /// [`Forge::neutral`]. `None` leaves it unchanged.
    pub comment: Option<String>,
    /// Labels that must be there, and labels that must not.
    pub labels: Option<(Vec<String>, Vec<String>)>,
}

/// A pull request whose changes are on the target branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedNote {
    /// The pull request.
    pub pr: PrNumber,
    /// The head that was tested and landed.
    pub head: Sha,
    /// The commit on the target branch that they landed as.
    pub sha: Sha,
    /// Whether the changes landed as commits other than its own, so that the host does not mark the
    /// pull request as merged automatically.
    pub rewritten: bool,
}

/// A draft pull request that triggers the host's CI for a test branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestPullRequest {
    /// The test branch.
    pub branch: BranchName,
    /// The target branch.
    pub target: BranchName,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
}

/// A CI workflow run, as proof of who reports impacted targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRun {
    /// Whether it is still running.
    pub live: bool,
    /// Whether it runs for a pull request from a fork of this repository.
    pub from_fork: bool,
    /// The commit that it runs for.
    pub head: Sha,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No problem.
    Fine,
    /// A feature is limited.
    Warning,
    /// A feature does not work.
    Problem,
}

/// A finding of a diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable name: `permission.contents`.
    pub id: String,
    /// Its severity.
    pub severity: Severity,
    /// The finding, as a sentence.
    pub sentence: String,
    /// How to fix it; empty if there is nothing to fix.
    pub fix: String,
}

/// A host with pull requests and users. A failure of any call here does not affect the queue.
#[async_trait]
pub trait Forge: Send + Sync {
    /// A user's present permission in the repository.
    async fn permission(
        &self,
        repository: &Repository,
        login: &str,
    ) -> Result<Permission, HostError>;

    /// Reads a comment; `None` if it was deleted.
    async fn comment(&self, repository: &Repository, id: u64)
    -> Result<Option<Comment>, HostError>;

    /// The comments written or changed since a time, oldest first, at most 1,000: for each its pull
    /// request and its id.
    async fn comments_since(
        &self,
        repository: &Repository,
        since: Timestamp,
    ) -> Result<Vec<(PrNumber, u64)>, HostError>;

    /// Reacts to a comment, to show whether its command was accepted.
    async fn react(
        &self,
        repository: &Repository,
        comment: u64,
        taken: bool,
    ) -> Result<(), HostError>;

    /// Reads the labels of a pull request.
    async fn labels(&self, repository: &Repository, pr: PrNumber)
    -> Result<Vec<String>, HostError>;

    /// Shows status, comment and labels on a pull request. Parts that are already shown cost only
    /// reads.
    async fn announce(
        &self,
        repository: &Repository,
        announcement: &Announcement,
    ) -> Result<(), HostError>;

    /// Closes a pull request whose changes landed as other commits, if it is still open. Returns
    /// its head if it is not the landed one: later commits did not land.
    async fn close_landed(
        &self,
        repository: &Repository,
        landed: &LandedNote,
    ) -> Result<Option<Sha>, HostError>;

    /// Opens a draft pull request for a test branch unless it has one.
    async fn open_test_pull_request(
        &self,
        repository: &Repository,
        wanted: &TestPullRequest,
    ) -> Result<(), HostError>;

    /// Reads a workflow run; `None` if the repository has none with this id.
    async fn workflow_run(
        &self,
        repository: &Repository,
        id: u64,
    ) -> Result<Option<WorkflowRun>, HostError>;

    /// The prefix of commands in comments: `/signalbox`.
    fn command_prefix(&self) -> &str;

    /// The lines of a comment that its author wrote as plain text, without code, quotes and hidden
    /// parts.
    fn plain_lines(&self, comment: &str) -> Vec<String>;

    /// Escapes text from users for a comment: no markup, no mentions.
    fn neutral(&self, text: &str) -> String;

    /// Hints that a check was reported on a commit, so that waiting runners read it again.
    fn checks_hinted(&self, sha: &Sha);

    /// Diagnoses the connection to the host and the permissions for these repositories.
    async fn diagnose(&self, repositories: &[Repository]) -> Vec<Finding>;
}
