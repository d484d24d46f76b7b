//! Ports of public events and webhooks.

mod event_catalog;
mod event_log;
mod event_writer;
mod webhook_secrets;
mod webhook_sender;
mod webhook_store;

use std::sync::Arc;

pub use event_catalog::EventCatalog;
pub use event_log::{EventLog, PublicEvent};
pub use event_writer::{EventRecord, EventWriter, QueuePlace, TestSnapshot};
pub use webhook_secrets::{NewSecret, SecretError, WebhookSecrets};
pub use webhook_sender::{Outgoing, Posted, WebhookSender};
pub use webhook_store::{EndpointLease, LeasedEndpoint, MessageFilter, WebhookStore};

/// The stores of public events and webhooks in one database.
#[derive(Clone)]
pub struct WebhookStores {
    /// Endpoints and messages.
    pub endpoints: Arc<dyn WebhookStore>,
    /// Public events.
    pub event_log: Arc<dyn EventLog>,
}
