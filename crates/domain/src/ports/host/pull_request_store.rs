//! Pull requests of hosts that keep none themselves: plain git.

use async_trait::async_trait;

use crate::ids::{BranchName, OrgId, PrNumber, RepoId, Sha};
use crate::ports::StoreError;
use crate::queue::PullRequestState;
use crate::time::Timestamp;

/// A pull request to be opened; it gets the repository's next number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPullRequest {
    /// Whose.
    pub org: OrgId,
    /// In which repository.
    pub repo: RepoId,
    /// The title.
    pub title: String,
    /// The description.
    pub body: String,
    /// Who opens it.
    pub author: String,
    /// The branch that is followed, when it was opened from one.
    pub head_branch: Option<BranchName>,
    /// The topic, when it was pushed to `refs/for/…`.
    pub topic: Option<String>,
    /// The commit that it proposes.
    pub head: Sha,
    /// The branch that it wants to be merged into.
    pub base: BranchName,
    /// When.
    pub at: Timestamp,
}

/// A pull request as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of NewPullRequest")]
pub struct StoredPullRequest {
    pub org: OrgId,
    pub repo: RepoId,
    /// Its number, from 1 up, without gaps within a repository.
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
    /// Whether it is marked as unfinished.
    pub draft: bool,
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What tells whether an open pull request may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPullRequest {
    /// Its number.
    pub number: PrNumber,
    /// The branch that it follows, if it was opened from one.
    pub head_branch: Option<BranchName>,
    /// The branch that it wants to be merged into.
    pub base: BranchName,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// Keeps pull requests.
#[async_trait]
pub trait PullRequestStore: Send + Sync {
    /// Opens a pull request under the repository's next number; of two at once each gets its own.
    async fn open(&self, new: &NewPullRequest) -> Result<StoredPullRequest, StoreError>;

    /// The pull request of that number.
    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        number: PrNumber,
    ) -> Result<Option<StoredPullRequest>, StoreError>;

    /// The open pull request of that author-independent topic into that branch.
    async fn find_open_by_topic(
        &self,
        org: OrgId,
        repo: RepoId,
        topic: &str,
        base: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError>;

    /// The newest pull request from that branch, open ones first.
    async fn find_by_branch(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError>;

    /// Replaces what is kept, by number. `false` when there is no such pull request.
    async fn update(&self, pull_request: &StoredPullRequest) -> Result<bool, StoreError>;

    /// A repository's open pull requests by number, without their texts.
    async fn open_ones(&self, org: OrgId, repo: RepoId)
    -> Result<Vec<OpenPullRequest>, StoreError>;

    /// A repository's pull requests, newest first; only open ones if asked.
    async fn list(
        &self,
        org: OrgId,
        repo: RepoId,
        only_open: bool,
    ) -> Result<Vec<StoredPullRequest>, StoreError>;
}
