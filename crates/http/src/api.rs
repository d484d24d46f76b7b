//! The state of the routes, and their addresses.

use std::sync::{Arc, OnceLock};

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::{NormalizePath, from_fn};
use actix_web::web::{Data, ServiceConfig};
use actix_web::{App, Error};
use async_trait::async_trait;
use signalbox_domain::ports::{Clock, Exposition, IdSource, Observer};
use signalbox_services::{
    AuditService, Authenticator, EventService, FailureReads, FlakyService, HintService,
    IdempotencyService, QueueService, UploadService, WebhookService, WhatIf,
};

use crate::admission::{Admission, admit, to_the_end};
use crate::dto::tests::TestLinks;
use crate::event_hub::EventHub;
use crate::openapi::Served;
use crate::paging::PageTokens;
use crate::queue_replies::QueueReplies;
use crate::request_id::with_request_id;
use crate::routes;

/// Whether the server may be sent requests.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Why the server is not ready: the database, a migration, or a shutdown; `None` when it is.
    async fn missing(&self) -> Option<String>;
}

/// The state of the flaky-test routes.
#[derive(Clone)]
pub struct FlakyApi {
    /// The use cases of flaky tests.
    pub service: Arc<FlakyService>,
    /// Signs page tokens.
    pub pages: PageTokens,
    /// Where pages of tests and tickets are.
    pub links: TestLinks,
    /// Whether the pages of tests are public.
    pub public_pages: bool,
}

/// An event of the catalog.
#[derive(Clone, Debug)]
pub struct EventDescription {
    /// Its public name.
    pub kind: String,
    /// When it is emitted.
    pub description: String,
    /// The JSON Schema of its payload.
    pub schema: String,
}

/// Every public event, and the description of the API that has their payloads.
#[derive(Clone, Debug)]
pub struct DescribedEvents(Arc<(Vec<EventDescription>, OnceLock<Served>)>);

impl FromIterator<EventDescription> for DescribedEvents {
    fn from_iter<I: IntoIterator<Item = EventDescription>>(events: I) -> Self {
        Self(Arc::new((events.into_iter().collect(), OnceLock::new())))
    }
}

impl DescribedEvents {
    pub(crate) fn events(&self) -> &[EventDescription] {
        &self.0.0
    }

    /// The description of the API, made when it is first requested.
    pub(crate) fn served(&self) -> &Served {
        self.0.1.get_or_init(|| Served::of(self.events()))
    }
}

/// The state of the event routes.
#[derive(Clone)]
pub struct EventsApi {
    /// Reads the log.
    pub service: Arc<EventService>,
    /// Wakes and ends streams.
    pub hub: EventHub,
    /// Every event that there is.
    pub catalog: DescribedEvents,
}

/// The state of all routes.
#[derive(Clone)]
pub struct Api {
    /// The use cases of queues.
    pub queues: Arc<QueueService>,
    /// Serialized replies about queues.
    pub queue_replies: Arc<QueueReplies>,
    /// Simulates their histories.
    pub what_if: Arc<WhatIf>,
    /// The events of hosts.
    pub hints: Arc<HintService>,
    /// The use cases of uploads.
    pub uploads: Arc<UploadService>,
    /// The address by which others reach the server, without a slash at its end; `None`: the one by
    /// which they did.
    pub public_url: Option<String>,
    /// Where vulnerabilities are reported, as a URI; `None`: there is no `security.txt`.
    pub security_contact: Option<Arc<str>>,
    /// Flaky tests.
    pub flaky: FlakyApi,
    /// The use cases of webhooks.
    pub webhooks: Arc<WebhookService>,
    /// Public events.
    pub events: EventsApi,
    /// Who calls.
    pub authenticator: Arc<Authenticator>,
    /// Writes metrics as text.
    pub exposition: Arc<dyn Exposition>,
    /// Keys of requests that may be repeated.
    pub idempotency: Arc<IdempotencyService>,
    /// Who changed what.
    pub audit: Arc<AuditService>,
    /// Sees requests.
    pub observer: Arc<dyn Observer>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Request ids.
    pub ids: Arc<dyn IdSource>,
    /// How much is done at the same time.
    pub admission: Arc<Admission>,
    /// Whether the server is ready.
    pub readiness: Arc<dyn Readiness>,
}

impl Api {
    /// Reads about failures.
    pub(crate) fn failures(&self) -> FailureReads<'_> {
        FailureReads { queues: &self.queues, tests: &self.flaky.service }
    }
}

/// Adds every route. The app wraps itself in [`to_the_end`], inside of that in
/// [`crate::with_request_id`] and in a middleware that merges slashes, and innermost in [`admit`];
/// [`app`] is an app that has done so.
pub fn configure(api: Api) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let contact = api.security_contact.clone();
        config.app_data(Data::new(api));
        routes::configure(config, contact);
    }
}

/// The whole app: every route, with doubled slashes merged, a slash at the end ignored, request
/// ids, and no more work at the same time than [`Api::admission`] allows.
pub fn app(
    api: Api,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    App::new()
        .configure(configure(api))
        .wrap(from_fn(admit))
        .wrap(NormalizePath::trim())
        .wrap(from_fn(with_request_id))
        .wrap(from_fn(to_the_end))
}
