//! What hosts with people on them can do beyond git: comments, labels, statuses, permissions.

use async_trait::async_trait;

use crate::ids::{BranchName, PrNumber, Sha};
use crate::ports::{HostError, Repository};
use crate::time::Timestamp;

/// What somebody may do in a repository, as the host says. The order is that of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Nothing.
    None,
    /// Look at it.
    Read,
    /// Push to it.
    Write,
    /// Change its settings.
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

/// How a status on a pull request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusState {
    /// The queue is at work.
    Pending,
    /// It has landed.
    Success,
    /// It has left the queue without landing.
    Failure,
}

/// A status on a pull request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusNote {
    /// The commit.
    pub sha: Sha,
    /// How it stands.
    pub state: StatusState,
    /// A line for people, at most 140 characters are shown.
    pub description: String,
}

/// What is to be shown on a pull request. Showing the same again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The pull request.
    pub pr: PrNumber,
    /// The name of the queue: its target branch. Statuses and comments of different queues are
    /// different.
    pub queue: BranchName,
    /// The status; `None` leaves it alone.
    pub status: Option<StatusNote>,
    /// The text of the queue's only comment, Markdown whose foreign parts have been passed through
    /// [`Forge::neutral`]; `None` leaves it alone.
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
    /// Whether they landed as other commits than its own, so that the host does not mark it as
    /// merged by itself.
    pub rewritten: bool,
}

/// A draft pull request that makes the host's CI look at a test branch.
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

/// A workflow run, as far as it vouches for who reports targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRun {
    /// Whether it has not ended.
    pub live: bool,
    /// Whether it runs for a pull request from a fork of this repository.
    pub from_fork: bool,
    /// The commit that it runs for.
    pub head: Sha,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Fine,
    /// Something does less than it could.
    Warning,
    /// Something does not work.
    Problem,
}

/// What a look at the host has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable name: `permission.contents`.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub sentence: String,
    /// What to change; empty when nothing.
    pub fix: String,
}

/// A host with people on it. Everything here may fail without harm to the queue.
#[async_trait]
pub trait Forge: Send + Sync {
    /// What somebody may do in the repository now.
    async fn permission(
        &self,
        repository: &Repository,
        login: &str,
    ) -> Result<Permission, HostError>;

    /// A comment as it is now. `None` when it is gone.
    async fn comment(&self, repository: &Repository, id: u64)
    -> Result<Option<Comment>, HostError>;

    /// The comments that were written or changed since then, oldest first, at most 1,000: the pull
    /// request of each and its id.
    async fn comments_since(
        &self,
        repository: &Repository,
        since: Timestamp,
    ) -> Result<Vec<(PrNumber, u64)>, HostError>;

    /// Shows on a comment whether its command was taken.
    async fn react(
        &self,
        repository: &Repository,
        comment: u64,
        taken: bool,
    ) -> Result<(), HostError>;

    /// The labels of a pull request as they are now.
    async fn labels(&self, repository: &Repository, pr: PrNumber)
    -> Result<Vec<String>, HostError>;

    /// Shows something on a pull request. Parts that are there already cost reads only.
    async fn announce(
        &self,
        repository: &Repository,
        announcement: &Announcement,
    ) -> Result<(), HostError>;

    /// Closes a pull request that has landed as other commits than its own, if it is still open.
    /// Returns its head if that is not the one that landed: later commits were left out.
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

    /// A workflow run. `None` when the repository has none of that id.
    async fn workflow_run(
        &self,
        repository: &Repository,
        id: u64,
    ) -> Result<Option<WorkflowRun>, HostError>;

    /// The word that commands in comments start with: `/signalbox`.
    fn command_prefix(&self) -> &str;

    /// The lines of a comment that are plain text of its author, in the host's markup: without
    /// code, quotes and what is not shown.
    fn plain_lines(&self, comment: &str) -> Vec<String>;

    /// Foreign text without markup and mentions, for comments.
    fn neutral(&self, text: &str) -> String;

    /// Something was reported on a commit: whoever waits for its checks looks again.
    fn checks_hinted(&self, sha: &Sha);

    /// Tries what can be tried on the host itself, for these repositories.
    async fn diagnose(&self, repositories: &[Repository]) -> Vec<Finding>;
}
