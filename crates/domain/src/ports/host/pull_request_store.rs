//! Pull requests of plain git hosts, which have none of their own.

use async_trait::async_trait;

use crate::ids::{BranchName, OrgId, PrNumber, RepoId, Sha};
use crate::ports::StoreError;
use crate::queue::PullRequestState;
use crate::time::Timestamp;

/// A pull request to open; it gets the repository's next number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPullRequest {
    /// The organization.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// The title.
    pub title: String,
    /// The description.
    pub body: String,
    /// The name of its author.
    pub author: String,
    /// The branch that it follows, if it was opened from one.
    pub head_branch: Option<BranchName>,
    /// The topic, if it was pushed to `refs/for/…`.
    pub topic: Option<String>,
    /// Its head commit.
    pub head: Sha,
    /// The branch that it targets.
    pub base: BranchName,
    /// When it is opened.
    pub at: Timestamp,
}

/// A stored pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of NewPullRequest")]
pub struct StoredPullRequest {
    pub org: OrgId,
    pub repo: RepoId,
    /// Its number: from 1, without gaps within a repository.
    pub number: PrNumber,
    pub title: String,
    pub body: String,
    pub author: String,
    pub head_branch: Option<BranchName>,
    pub topic: Option<String>,
    pub head: Sha,
    pub base: BranchName,
    /// Open, closed or merged.
    pub state: PullRequestState,
    /// Whether it is a draft.
    pub draft: bool,
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The part of an open pull request that tells whether it may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPullRequest {
    /// Its number.
    pub number: PrNumber,
    /// The branch that it follows, if it was opened from one.
    pub head_branch: Option<BranchName>,
    /// The branch that it targets.
    pub base: BranchName,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// Stores pull requests.
#[async_trait]
pub trait PullRequestStore: Send + Sync {
    /// Opens a pull request under the repository's next number; concurrent calls get different
    /// numbers.
    async fn open(&self, new: &NewPullRequest) -> Result<StoredPullRequest, StoreError>;

    /// The pull request with this number.
    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        number: PrNumber,
    ) -> Result<Option<StoredPullRequest>, StoreError>;

    /// The open pull request with this topic into this branch, by any author.
    async fn find_open_by_topic(
        &self,
        org: OrgId,
        repo: RepoId,
        topic: &str,
        base: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError>;

    /// The newest pull request from this branch, open ones first.
    async fn find_by_branch(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError>;

    /// Replaces a pull request, found by its number; `false` if it does not exist.
    async fn update(&self, pull_request: &StoredPullRequest) -> Result<bool, StoreError>;

    /// A repository's open pull requests, ordered by number, without their texts.
    async fn open_ones(&self, org: OrgId, repo: RepoId)
    -> Result<Vec<OpenPullRequest>, StoreError>;

    /// A repository's pull requests, newest first; optionally only open ones.
    async fn list(
        &self,
        org: OrgId,
        repo: RepoId,
        only_open: bool,
    ) -> Result<Vec<StoredPullRequest>, StoreError>;
}
