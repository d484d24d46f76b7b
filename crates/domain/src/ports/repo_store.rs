//! Repositories.

use async_trait::async_trait;

use crate::ids::{OrgId, RepoId, RepoName};
use crate::time::Timestamp;

use super::StoreError;

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
    /// Writes a repository unless the organization has its name already (compared in lower case
    /// when `case_insensitive`); returns the one that then has the name. A path that is given
    /// replaces the one that was kept.
    async fn register(
        &self,
        repository: &Repository,
        case_insensitive: bool,
    ) -> Result<Repository, StoreError>;

    /// The organization's repository of that name.
    async fn find_by_name(
        &self,
        org: OrgId,
        name: &RepoName,
        case_insensitive: bool,
    ) -> Result<Option<Repository>, StoreError>;

    /// The organization's repository with that id.
    async fn find(&self, org: OrgId, id: RepoId) -> Result<Option<Repository>, StoreError>;

    /// Repositories by name; of one organization if given.
    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Repository>, StoreError>;
}
