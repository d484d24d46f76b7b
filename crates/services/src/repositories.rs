//! Which repository a name means. Every way in asks here, so that one repository never becomes two
//! because it was spelled differently.

use signalbox_domain::ids::{OrgId, RepoName};
use signalbox_domain::ports::{Repository, StoreError};
use signalbox_domain::token::Caller;

use super::Context;

impl Context {
    /// The organization's repository of that name, by the rule of its host: see
    /// [`Hosts::any_case`](signalbox_domain::ports::Hosts::any_case).
    pub async fn repository_named(
        &self,
        org: OrgId,
        name: &RepoName,
    ) -> Result<Option<Repository>, StoreError> {
        let any_case = self.hosts.any_case(org, &name.host);
        self.stores.repos.find_by_name(org, name, any_case).await
    }

    /// Registers a repository, or returns the one that has its name already.
    pub async fn register_repository(&self, new: &Repository) -> Result<Repository, StoreError> {
        let any_case = self.hosts.any_case(new.org, &new.name.host);
        self.stores.repos.register(new, any_case).await
    }

    /// Whether the caller's token may see that repository. To one that may not, it does not exist.
    pub fn may_see(&self, caller: &Caller, repo: &RepoName) -> bool {
        caller.may_see(repo, self.hosts.any_case(caller.org, &repo.host))
    }
}
