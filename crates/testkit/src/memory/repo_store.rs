//! Repositories.

use async_trait::async_trait;
use signalbox_domain::ids::{OrgId, RepoId, RepoName};
use signalbox_domain::ports::{RepoStore, Repository, StoreError};

use super::MemoryDatabase;

#[async_trait]
impl RepoStore for MemoryDatabase {
    async fn register(
        &self,
        repository: &Repository,
        case_insensitive: bool,
    ) -> Result<Repository, StoreError> {
        let mut tables = self.tables();
        let known = tables
            .repos
            .values_mut()
            .find(|it| it.org == repository.org && same(it, &repository.name, case_insensitive));
        if let Some(known) = known {
            if repository.path.is_some() {
                known.path.clone_from(&repository.path);
            }
            return Ok(known.clone());
        }
        tables.repos.insert((repository.org, repository.id), repository.clone());
        Ok(repository.clone())
    }

    async fn find_by_name(
        &self,
        org: OrgId,
        name: &RepoName,
        case_insensitive: bool,
    ) -> Result<Option<Repository>, StoreError> {
        let tables = self.tables();
        let mut own = tables.repos.values().filter(|it| it.org == org);
        Ok(own.find(|it| same(it, name, case_insensitive)).cloned())
    }

    async fn find(&self, org: OrgId, id: RepoId) -> Result<Option<Repository>, StoreError> {
        Ok(self.tables().repos.get(&(org, id)).cloned())
    }

    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Repository>, StoreError> {
        let tables = self.tables();
        let mut repos: Vec<Repository> = tables
            .repos
            .values()
            .filter(|it| org.is_none_or(|org| it.org == org))
            .cloned()
            .collect();
        repos.sort_by(|one, other| (&one.name, one.org).cmp(&(&other.name, other.org)));
        Ok(repos)
    }
}

fn same(repository: &Repository, name: &RepoName, case_insensitive: bool) -> bool {
    repository.name.key(case_insensitive) == name.key(case_insensitive)
}
