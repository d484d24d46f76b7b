//! Which repository a name means. Every way in asks here, so that one repository never becomes two
//! because it was spelled differently.

use std::sync::Arc;

use signalbox_domain::ids::{HostId, OrgId, RepoId, RepoName};
use signalbox_domain::ports::{GitHost, Hosts, RepoStore, Repository, StoreError};
use signalbox_domain::token::Caller;

use super::Context;

/// The registered repositories, by the rules for names of their hosts: see
/// [`Hosts::any_case`].
#[derive(Clone)]
pub struct Repositories {
    store: Arc<dyn RepoStore>,
    hosts: Arc<dyn Hosts>,
}

impl Repositories {
    /// The repositories of that store.
    pub const fn new(store: Arc<dyn RepoStore>, hosts: Arc<dyn Hosts>) -> Self {
        Self { store, hosts }
    }

    /// The organization's repository of that name.
    pub async fn named(
        &self,
        org: OrgId,
        name: &RepoName,
    ) -> Result<Option<Repository>, StoreError> {
        self.store.find_by_name(org, name, self.hosts.any_case(org, &name.host)).await
    }

    /// Registers a repository, or returns the one that has its name already.
    pub async fn register(&self, new: &Repository) -> Result<Repository, StoreError> {
        self.store.register(new, self.hosts.any_case(new.org, &new.name.host)).await
    }

    /// Whether the caller's token may see that repository. To one that may not, it does not exist.
    pub fn may_see(&self, caller: &Caller, repo: &RepoName) -> bool {
        caller.may_see(repo, self.hosts.any_case(caller.org, &repo.host))
    }

    /// The host of that name, when the organization is connected to it.
    pub(super) fn host(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>> {
        self.hosts.git_host(org, host)
    }

    /// A repository of an organization.
    pub(super) async fn find(
        &self,
        org: OrgId,
        id: RepoId,
    ) -> Result<Option<Repository>, StoreError> {
        self.store.find(org, id).await
    }

    /// The repositories of an organization; of all of them with `None`.
    pub(super) async fn list(&self, org: Option<OrgId>) -> Result<Vec<Repository>, StoreError> {
        self.store.list(org).await
    }
}

impl Context {
    /// The registered repositories.
    pub fn repositories(&self) -> Repositories {
        Repositories::new(self.stores.account.repos.clone(), self.hosts.clone())
    }
}
