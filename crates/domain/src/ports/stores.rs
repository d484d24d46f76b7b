//! All stores of one database.

use super::{AccountStores, FlakyStores, HostStores, QueueStores, RuntimeStores, WebhookStores};

/// Every store of one database, by context.
#[derive(Clone)]
pub struct Stores {
    /// The merge queue.
    pub queue: QueueStores,
    /// Flaky tests.
    pub flaky: FlakyStores,
    /// Public events and webhooks.
    pub webhook: WebhookStores,
    /// Organizations, repositories, tokens and sessions.
    pub account: AccountStores,
    /// Git hosts.
    pub host: HostStores,
    /// Background work.
    pub runtime: RuntimeStores,
}
