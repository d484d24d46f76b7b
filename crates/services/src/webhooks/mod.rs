//! Use cases of webhooks: endpoints are looked after, events become messages, messages are sent.

mod deliver;
mod endpoints;
mod error;
mod fan_out;
mod log;

use std::sync::Arc;

use uuid::Uuid;

use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{EventCatalogue, EventLog, WebhookSecrets, WebhookSender};
use signalbox_domain::token::{Caller, Scope};
use signalbox_domain::webhook::{Endpoint, EndpointId};

use super::{Error, WebhookContext};

pub use endpoints::{CreatedEndpoint, EndpointChange};
pub use error::WebhookError;
pub use log::{DeliveryPage, Replay, Replayed};

/// How often a change is tried when others change the same endpoint.
const ATTEMPTS: u32 = 8;

/// The adapters that only webhooks need.
#[derive(Clone)]
pub struct WebhookParts {
    /// What happened.
    pub log: Arc<dyn EventLog>,
    /// Which events there are.
    pub catalogue: Arc<dyn EventCatalogue>,
    /// Posts messages.
    pub sender: Arc<dyn WebhookSender>,
    /// Makes secrets.
    pub secrets: Arc<dyn WebhookSecrets>,
}

/// What webhooks may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookLimits {
    /// Endpoints of one organization.
    pub endpoints: u32,
    /// Messages of one endpoint that wait at the same time. With that many, no more are made until
    /// some have ended; the events wait in their log.
    pub backlog: u32,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self { endpoints: 50, backlog: 10_000 }
    }
}

/// What is done with webhooks. Methods with a caller check what the caller may do.
pub struct WebhookService {
    context: WebhookContext,
    parts: WebhookParts,
    limits: WebhookLimits,
    holder: Uuid,
}

impl WebhookService {
    /// A service with a holder id of its own.
    pub fn new(
        context: impl Into<WebhookContext>,
        parts: WebhookParts,
        limits: WebhookLimits,
    ) -> Self {
        let context = context.into();
        let holder = context.ids.new_id();
        Self { context, parts, limits, holder }
    }

    /// Webhooks tell everything of an organization, and may carry it anywhere: who looks after them
    /// must be allowed to do and see all of it.
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

    /// The names of all events.
    pub fn kinds(&self) -> Vec<String> {
        self.parts.catalogue.kinds()
    }
}
