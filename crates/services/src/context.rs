//! What use cases work with: everything that the app wired, and the part of each family.

use std::sync::Arc;

use signalbox_domain::ports::{
    AccountStores, AuditLog, Clock, EventWriter, FlakyStores, Hosts, IdSource, Notifier, Observer,
    OrgStore, QueueStores, Stores, WebhookStore,
};

use super::Repositories;

/// Every adapter, as the app wired them. A service takes the part of it that it needs.
#[derive(Clone)]
pub struct Context {
    /// The database.
    pub stores: Stores,
    /// The git hosts.
    pub hosts: Arc<dyn Hosts>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
    /// Payloads of public events.
    pub events: Arc<dyn EventWriter>,
    /// Wake-ups of background work.
    pub notifier: Arc<dyn Notifier>,
}

/// What the use cases of merge queues work with.
#[derive(Clone)]
pub struct QueueContext {
    /// The stores of queues.
    pub stores: QueueStores,
    /// The repositories.
    pub repositories: Repositories,
    /// The audit log, for what is not written with a commit.
    pub audit: Arc<dyn AuditLog>,
    /// The git hosts.
    pub hosts: Arc<dyn Hosts>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
    /// Payloads of public events.
    pub events: Arc<dyn EventWriter>,
    /// Wake-ups of background work.
    pub notifier: Arc<dyn Notifier>,
}

/// What the use cases of flaky tests and of uploads work with.
#[derive(Clone)]
pub struct FlakyContext {
    /// The stores of tests and uploads.
    pub stores: FlakyStores,
    /// The organizations.
    pub orgs: Arc<dyn OrgStore>,
    /// The repositories.
    pub repositories: Repositories,
    /// The audit log, for what is not written with a commit.
    pub audit: Arc<dyn AuditLog>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
    /// Payloads of public events.
    pub events: Arc<dyn EventWriter>,
    /// Wake-ups of background work.
    pub notifier: Arc<dyn Notifier>,
}

/// What the use cases of webhooks work with.
#[derive(Clone)]
pub struct WebhookContext {
    /// Endpoints and messages.
    pub endpoints: Arc<dyn WebhookStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
}

/// What the use cases of tokens, sessions and the audit log work with.
#[derive(Clone)]
pub struct AccountContext {
    /// The stores of organizations.
    pub stores: AccountStores,
    /// The repositories.
    pub repositories: Repositories,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
}

impl From<Context> for QueueContext {
    fn from(context: Context) -> Self {
        Self {
            repositories: context.repositories(),
            stores: context.stores.queue,
            audit: context.stores.account.audit,
            hosts: context.hosts,
            clock: context.clock,
            ids: context.ids,
            observer: context.observer,
            events: context.events,
            notifier: context.notifier,
        }
    }
}

impl From<Context> for FlakyContext {
    fn from(context: Context) -> Self {
        Self {
            repositories: context.repositories(),
            stores: context.stores.flaky,
            orgs: context.stores.account.orgs,
            audit: context.stores.account.audit,
            clock: context.clock,
            ids: context.ids,
            observer: context.observer,
            events: context.events,
            notifier: context.notifier,
        }
    }
}

impl From<Context> for WebhookContext {
    fn from(context: Context) -> Self {
        Self {
            endpoints: context.stores.webhook.endpoints,
            clock: context.clock,
            ids: context.ids,
            observer: context.observer,
        }
    }
}

impl From<Context> for AccountContext {
    fn from(context: Context) -> Self {
        Self {
            repositories: context.repositories(),
            stores: context.stores.account,
            clock: context.clock,
            ids: context.ids,
        }
    }
}
