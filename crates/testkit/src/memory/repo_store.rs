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
        any_case: bool,
    ) -> Result<Repository, StoreError> {
        let mut tables = self.tables();
        let own = tables.repos.values().filter(|it| it.org == repository.org);
        let known = named(own, &repository.name, any_case).map(|it| (it.org, it.id));
        if let Some(known) = known.and_then(|key| tables.repos.get_mut(&key)) {
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
        any_case: bool,
    ) -> Result<Option<Repository>, StoreError> {
        let tables = self.tables();
        let own = tables.repos.values().filter(|it| it.org == org);
        Ok(named(own, name, any_case).cloned())
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

/// An exact match, or else one in another case; of several the one in lower case.
pub(super) fn named<'a>(
    own: impl Iterator<Item = &'a Repository>,
    name: &RepoName,
    any_case: bool,
) -> Option<&'a Repository> {
    let mut same: Vec<_> = own.filter(|it| it.name.is_same(name, any_case)).collect();
    let is_lower = |it: &Repository| {
        it.name.owner == it.name.owner.to_lowercase() && it.name.name == it.name.name.to_lowercase()
    };
    same.sort_by_key(|it| (it.name != *name, !is_lower(it), it.created_at));
    same.first().copied()
}
