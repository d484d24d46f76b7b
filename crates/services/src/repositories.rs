//! Lookup of repositories by name. Every entry point uses it, so that different spellings never
//! register one repository twice.

use std::sync::Arc;

use signalbox_domain::ids::{BranchName, HostId, OrgId, PrNumber, RepoId, RepoName};
use signalbox_domain::ports::{
    GitHost, Hosts, Located, QueueStore, RepoStore, Repository, StoreError,
};
use signalbox_domain::token::Caller;

use super::Context;

/// The registered repositories, looked up by the rules of their hosts: see [`Hosts::any_case`].
#[derive(Clone)]
pub struct Repositories {
    store: Arc<dyn RepoStore>,
    hosts: Arc<dyn Hosts>,
}

impl Repositories {
    /// Creates the lookup on a store.
    pub const fn new(store: Arc<dyn RepoStore>, hosts: Arc<dyn Hosts>) -> Self {
        Self { store, hosts }
    }

    /// The organization's repository of this name.
    pub async fn named(
        &self,
        org: OrgId,
        name: &RepoName,
    ) -> Result<Option<Repository>, StoreError> {
        self.store.find_by_name(org, name, self.hosts.any_case(org, &name.host)).await
    }

    /// The organization's repository of this name, with the queue of a branch, and the targets of a pull
    /// request.
    pub(super) async fn located(
        &self,
        queues: &dyn QueueStore,
        org: OrgId,
        name: &RepoName,
        branch: &BranchName,
        pr: Option<PrNumber>,
    ) -> Result<Option<Located>, StoreError> {
        queues.locate(org, name, self.hosts.any_case(org, &name.host), branch, pr).await
    }

    /// Registers a repository, or returns the one that already has its name.
    pub async fn register(&self, new: &Repository) -> Result<Repository, StoreError> {
        self.store.register(new, self.hosts.any_case(new.org, &new.name.host)).await
    }

    /// Whether the caller's token may access this repository. To any other token it does not exist.
    pub fn may_see(&self, caller: &Caller, repo: &RepoName) -> bool {
        caller.may_see(repo, self.hosts.any_case(caller.org, &repo.host))
    }

    /// The host of this name, if the organization is connected to it.
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

    /// The repositories of an organization, or of all for `None`.
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
