//! The audit log: reading it, and records of changes without a commit of their own.

use signalbox_domain::audit::{AuditAction, AuditActor, AuditFields, AuditRecord, differences};
use signalbox_domain::ids::{BranchName, OrgId, RepoName};
use signalbox_domain::ports::{AuditFilter, AuditPlace, IdSource};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Scope};
use signalbox_domain::webhook::EndpointId;

use super::{AccountContext, Error};

/// An audit record without its changes, which are added when they are known.
#[derive(Clone, Debug)]
pub struct AuditEntryBuilder {
    /// The organization.
    pub org: OrgId,
    /// Who makes the change.
    pub actor: AuditActor,
    /// The action.
    pub action: AuditAction,
    /// The changed object.
    pub object: String,
    /// The repository of the object, if it belongs to one.
    pub repo: Option<RepoName>,
    /// The caller's reason, if given.
    pub reason: Option<String>,
}

impl AuditEntryBuilder {
    /// An action of a caller on an object of a repository.
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

    /// An action of an operator of the server.
    pub const fn operator(org: OrgId, action: AuditAction, object: String) -> Self {
        Self { org, actor: AuditActor::Operator, action, object, repo: None, reason: None }
    }

    /// An action of a caller on a webhook endpoint.
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

    /// An action of a caller on a queue.
    pub(super) fn to_queue(
        caller: &Caller,
        action: AuditAction,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Self {
        Self::of(caller, action, format!("queue {branch} of {repo}"), repo)
    }

    /// The record with these changes.
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

/// Use cases of the audit log.
pub struct AuditService {
    context: AccountContext,
}

impl AuditService {
    /// Creates the service.
    pub fn new(context: impl Into<AccountContext>) -> Self {
        Self { context: context.into() }
    }

    /// Writes a record of a change that has no commit of its own.
    pub async fn write(
        &self,
        audit_entry: &AuditEntryBuilder,
        before: &AuditFields,
        after: &AuditFields,
    ) -> Result<(), Error> {
        let record =
            audit_entry.record(&*self.context.ids, self.context.clock.now(), before, after);
        Ok(self.context.stores.audit.append(&record).await?)
    }

    /// Lists records of the caller's organization, newest first, at most `limit`. A token that is
    /// limited to repositories sees only their records.
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
