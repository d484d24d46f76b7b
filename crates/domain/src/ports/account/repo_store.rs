//! Repositories.

use async_trait::async_trait;

use crate::ids::{OrgId, RepoId, RepoName};
use crate::ports::StoreError;
use crate::time::Timestamp;

/// A repository that is registered with an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its id.
    pub id: RepoId,
    /// Whose it is.
    pub org: OrgId,
    /// Its name, as first registered.
    pub name: RepoName,
    /// Where it is, on hosts that keep bare repositories in folders.
    pub path: Option<String>,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// Keeps repositories. One name may be registered with several organizations.
#[async_trait]
pub trait RepoStore: Send + Sync {
    /// Writes a repository unless the organization has one of that name already, as
    /// [`find_by_name`](Self::find_by_name) finds it; returns the one that then has the name. A path
    /// that is given replaces the one that was kept. Of several calls at once under spellings that
    /// name one repository, one writes.
    async fn register(
        &self,
        repository: &Repository,
        any_case: bool,
    ) -> Result<Repository, StoreError>;

    /// The organization's repository of that name: the one that is spelled exactly so, else, with
    /// `any_case`, the one that was registered under another spelling.
    async fn find_by_name(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
    ) -> Result<Option<Repository>, StoreError>;

    /// The organization's repository with that id.
    async fn find(&self, org: OrgId, id: RepoId) -> Result<Option<Repository>, StoreError>;

    /// Repositories by name; of one organization if given.
    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Repository>, StoreError>;
}
