//! Use cases of webhooks: endpoints, fan-out of events to messages, and delivery.

mod deliver;
mod endpoints;
mod error;
mod fan_out;
mod log;

use std::sync::Arc;

use uuid::Uuid;

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{EventCatalog, EventLog, WebhookSecrets, WebhookSender};
use signalbox_domain::token::{Caller, Scope};
use signalbox_domain::webhook::{Endpoint, EndpointId};

use super::{Error, WebhookContext};

pub use endpoints::{CreatedEndpoint, EndpointChange};
pub use error::WebhookError;
pub use log::{DeliveryPage, Replay, Replayed};

/// The most attempts of a change in case of concurrent changes.
const ATTEMPTS: u32 = 8;

/// The adapters that only webhooks need.
#[derive(Clone)]
pub struct WebhookParts {
    /// The event log.
    pub log: Arc<dyn EventLog>,
    /// The catalog of events.
    pub catalog: Arc<dyn EventCatalog>,
    /// The sender of messages.
    pub sender: Arc<dyn WebhookSender>,
    /// The signing secrets.
    pub secrets: Arc<dyn WebhookSecrets>,
}

/// The limits of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookLimits {
    /// The most endpoints of an organization.
    pub endpoints: u32,
    /// The most pending messages of an endpoint. At the limit, no more are created until some have
    /// ended; the events wait in the log.
    pub backlog: u32,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self { endpoints: 50, backlog: 10_000 }
    }
}

/// Use cases of webhooks. Methods with a caller check its scopes.
pub struct WebhookService {
    context: WebhookContext,
    parts: WebhookParts,
    limits: WebhookLimits,
    holder: Uuid,
}

impl WebhookService {
    /// Creates the service, with a lease holder id of its own.
    pub fn new(
        context: impl Into<WebhookContext>,
        parts: WebhookParts,
        limits: WebhookLimits,
    ) -> Self {
        let context = context.into();
        let holder = context.ids.new_id();
        Self { context, parts, limits, holder }
    }

    /// Webhooks publish every event of an organization to any URL, so managing them requires a
    /// token with full access to the organization.
    fn may(caller: &Caller) -> Result<(), Error> {
        if !caller.may(Scope::QueueAdmin) {
            return Err(Error::MissingScope(Scope::QueueAdmin));
        }
        if !caller.repos.is_empty() {
            return Err(WebhookError::LimitedToken.into());
        }
        Ok(())
    }

    async fn known(&self, org: OrgId, id: EndpointId) -> Result<Endpoint, Error> {
        let found = self.context.endpoints.endpoint(org, id).await?;
        Ok(found.ok_or(WebhookError::UnknownEndpoint(id))?)
    }

    /// The public names of all events.
    pub fn kinds(&self) -> Vec<String> {
        self.parts.catalog.kinds()
    }

    /// The public names of the events that an endpoint without a list receives.
    pub fn default_kinds(&self) -> Vec<String> {
        self.parts.catalog.defaults()
    }
}
