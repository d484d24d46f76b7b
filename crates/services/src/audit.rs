//! Reading the audit log, and writing what has no commit of its own.

use signalbox_domain::audit::{AuditAction, AuditActor, AuditFields, AuditRecord, differences};
use signalbox_domain::ids::{BranchName, OrgId, RepoName};
use signalbox_domain::ports::{AuditFilter, AuditPlace, IdSource};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Scope};
use signalbox_domain::webhook::EndpointId;

use super::{AccountContext, Error};

/// Who does something to what; the record is completed once it is known what changes.
#[derive(Clone, Debug)]
pub struct AuditEntryBuilder {
    /// Whose log.
    pub org: OrgId,
    /// Who.
    pub actor: AuditActor,
    /// What.
    pub action: AuditAction,
    /// To what.
    pub object: String,
    /// The repository that it belongs to.
    pub repo: Option<RepoName>,
    /// Why, if it was said.
    pub reason: Option<String>,
}

impl AuditEntryBuilder {
    /// What a caller does to something that belongs to a repository.
    pub fn of(caller: &Caller, action: AuditAction, object: String, repo: &RepoName) -> Self {
        Self {
            org: caller.org,
            actor: AuditActor::caller(caller),
            action,
            object,
            repo: Some(repo.clone()),
            reason: None,
        }
    }

    /// What somebody with a shell on the server does.
    pub const fn operator(org: OrgId, action: AuditAction, object: String) -> Self {
        Self { org, actor: AuditActor::Operator, action, object, repo: None, reason: None }
    }

    /// What a caller does to an endpoint of webhooks.
    pub(super) fn to_webhook(caller: &Caller, action: AuditAction, id: EndpointId) -> Self {
        Self {
            org: caller.org,
            actor: AuditActor::caller(caller),
            action,
            object: format!("webhook {id}"),
            repo: None,
            reason: None,
        }
    }

    /// What a caller does to a queue.
    pub(super) fn to_queue(
        caller: &Caller,
        action: AuditAction,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Self {
        Self::of(caller, action, format!("queue {branch} of {repo}"), repo)
    }

    /// The record of it.
    pub(super) fn record(
        &self,
        ids: &dyn IdSource,
        at: Timestamp,
        before: &AuditFields,
        after: &AuditFields,
    ) -> AuditRecord {
        AuditRecord {
            id: ids.new_id(),
            org: self.org,
            at,
            actor: self.actor.clone(),
            action: self.action,
            object: self.object.clone(),
            repo: self.repo.clone(),
            changes: differences(before, after),
            reason: self.reason.clone(),
            request: ids.request_id(),
        }
    }
}

/// The audit log for those who may read it.
pub struct AuditService {
    context: AccountContext,
}

impl AuditService {
    /// A service on these adapters.
    pub fn new(context: impl Into<AccountContext>) -> Self {
        Self { context: context.into() }
    }

    /// Writes a record of a change that has no commit of its own.
    pub async fn write(
        &self,
        deed: &AuditEntryBuilder,
        before: &AuditFields,
        after: &AuditFields,
    ) -> Result<(), Error> {
        let record = deed.record(&*self.context.ids, self.context.clock.now(), before, after);
        Ok(self.context.stores.audit.append(&record).await?)
    }

    /// Records of the caller's organization, newest first, at most `limit`. A token that is limited
    /// to repositories sees what belongs to these.
    pub async fn list(
        &self,
        caller: &Caller,
        mut filter: AuditFilter,
        before: Option<AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, Error> {
        if !caller.may(Scope::QueueAdmin) {
            return Err(Error::MissingScope(Scope::QueueAdmin));
        }
        if let Some(hidden) =
            filter.repos.iter().find(|repo| !self.context.repositories.may_see(caller, repo))
        {
            return Err(Error::UnknownRepository(hidden.clone()));
        }
        if filter.repos.is_empty() {
            filter.repos.clone_from(&caller.repos);
        }
        let stores = &self.context.stores;
        Ok(stores.audit.list(Some(caller.org), &filter, before, limit).await?)
    }
}
