//! Contexts: the ports that the services work with, all of them and per context.

use std::sync::Arc;

use signalbox_domain::ports::{
    AccountStores, AuditLog, Clock, EventWriter, FlakyStores, Hosts, IdSource, Notifier, Observer,
    OrgStore, QueueStores, Stores, WebhookStore,
};

use super::Repositories;

/// Every adapter, as the program provides them. A service takes the part that it needs, by `Into`.
#[derive(Clone)]
pub struct Context {
    /// The database.
    pub stores: Stores,
    /// The git hosts.
    pub hosts: Arc<dyn Hosts>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
    /// Payloads of public events.
    pub events: Arc<dyn EventWriter>,
    /// Wake-ups of background work.
    pub notifier: Arc<dyn Notifier>,
}

/// The ports of the merge queue's services.
#[derive(Clone)]
pub struct QueueContext {
    /// The stores of queues.
    pub stores: QueueStores,
    /// The stores of tests, read for the causes of failed checks.
    pub tests: FlakyStores,
    /// The repositories.
    pub repositories: Repositories,
    /// The audit log, for records without a commit of their own.
    pub audit: Arc<dyn AuditLog>,
    /// The git hosts.
    pub hosts: Arc<dyn Hosts>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
    /// Payloads of public events.
    pub events: Arc<dyn EventWriter>,
    /// Wake-ups of background work.
    pub notifier: Arc<dyn Notifier>,
}

/// The ports of the services of flaky tests and uploads.
#[derive(Clone)]
pub struct FlakyContext {
    /// The stores of tests and uploads.
    pub stores: FlakyStores,
    /// The organizations.
    pub orgs: Arc<dyn OrgStore>,
    /// The repositories.
    pub repositories: Repositories,
    /// The audit log, for records without a commit of their own.
    pub audit: Arc<dyn AuditLog>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
    /// Payloads of public events.
    pub events: Arc<dyn EventWriter>,
    /// Wake-ups of background work.
    pub notifier: Arc<dyn Notifier>,
}

/// The ports of the webhook service.
#[derive(Clone)]
pub struct WebhookContext {
    /// Endpoints and messages.
    pub endpoints: Arc<dyn WebhookStore>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
}

/// The ports of the services of tokens, sessions and the audit log.
#[derive(Clone)]
pub struct AccountContext {
    /// The stores of accounts.
    pub stores: AccountStores,
    /// The repositories.
    pub repositories: Repositories,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn IdSource>,
}

impl From<Context> for QueueContext {
    fn from(context: Context) -> Self {
        Self {
            repositories: context.repositories(),
            stores: context.stores.queue,
            tests: context.stores.flaky,
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
