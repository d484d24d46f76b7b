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
    /// The organization that owns it.
    pub org: OrgId,
    /// Its name, as first registered.
    pub name: RepoName,
    /// Its folder, on hosts with bare repositories in the file system.
    pub path: Option<String>,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// Stores repositories. One name may be registered with several organizations.
#[async_trait]
pub trait RepoStore: Send + Sync {
    /// Writes a repository unless the organization has one of this name, as
    /// [`find_by_name`](Self::find_by_name) finds it; returns the repository that has the name. A
    /// given path replaces the stored one. Of concurrent calls for one repository, also in
    /// different spellings, exactly one writes.
    async fn register(
        &self,
        repository: &Repository,
        any_case: bool,
    ) -> Result<Repository, StoreError>;

    /// The organization's repository of this name: an exact match first; with `any_case` also a
    /// repository that was registered in another case.
    async fn find_by_name(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
    ) -> Result<Option<Repository>, StoreError>;

    /// The organization's repository with this id.
    async fn find(&self, org: OrgId, id: RepoId) -> Result<Option<Repository>, StoreError>;

    /// Repositories ordered by name; of one organization if given.
    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Repository>, StoreError>;
}
