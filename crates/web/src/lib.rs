#![doc = include_str!("../README.md")]

mod assets;
mod failure;
mod live;
mod model;
mod packing;
mod reply;
mod routes;
mod shell;
mod svg;
mod text;
mod twin;
mod view;
mod visitor;

use std::net::IpAddr;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::web::{Data, ServiceConfig};
use async_trait::async_trait;
use signalbox_domain::identity::AdmissionPolicy;
use signalbox_domain::ids::OrgSlug;
use signalbox_domain::ports::IdentityProvider;
use signalbox_services::{
    AuditService, Authenticator, FailureReads, FlakyService, PageReads, QueueService, Sessions,
    TokenService, UploadService, WebhookService, WhatIf,
};

pub use view::status::ServerFact;

/// The source of the page about the server.
#[async_trait]
pub trait ServerFacts: Send + Sync {
    /// The current facts, the most important first.
    async fn facts(&self) -> Vec<ServerFact>;
}

/// An event that webhooks can subscribe to.
#[derive(Clone, Debug)]
pub struct EventInfo {
    /// Its public name.
    pub kind: String,
    /// When it is sent, in one sentence.
    pub description: String,
    /// The JSON Schema of its payload, indented.
    pub schema: String,
}

/// An identity provider that users sign in with.
pub struct SignInWith {
    /// The provider.
    pub provider: Arc<dyn IdentityProvider>,
    /// The users who may sign in, and their roles.
    pub policy: AdmissionPolicy,
    /// The organization that they belong to.
    pub org: OrgSlug,
    /// Its label on the sign-in page.
    pub label: String,
}

/// The state that the pages need.
#[derive(Clone)]
pub struct Pages {
    /// The queue service.
    pub queues: Arc<QueueService>,
    /// Simulates histories of queues.
    pub what_if: Arc<WhatIf>,
    /// The flaky-test service.
    pub flaky: Arc<FlakyService>,
    /// The upload service.
    pub uploads: Arc<UploadService>,
    /// Reads for the pages beyond the API.
    pub reads: Arc<PageReads>,
    /// The webhook service.
    pub webhooks: Arc<WebhookService>,
    /// The events that webhooks can subscribe to.
    pub events: Arc<[EventInfo]>,
    /// The token service.
    pub tokens: Arc<TokenService>,
    /// The identity provider; `None` when users sign in with tokens only.
    pub sign_in_with: Option<Arc<SignInWith>>,
    /// The session service.
    pub sessions: Arc<Sessions>,
    /// The audit log.
    pub audit: Arc<AuditService>,
    /// Resolves a token to its caller.
    pub authenticator: Arc<Authenticator>,
    /// The facts about the server.
    pub server: Arc<dyn ServerFacts>,
    /// The OpenAPI description of the API, as JSON.
    pub openapi: Arc<str>,
    /// The public URL of the server, without a slash at its end.
    pub public_url: String,
    /// The address of a ticket, with `{id}` in it.
    pub ticket_url: Option<String>,
    /// Whether the pages of tests are public.
    pub public_tests: bool,
    /// The id of a request, for pages about errors.
    pub request_id: fn(&HttpRequest) -> String,
    /// The address of a request's client.
    pub client: fn(&HttpRequest) -> IpAddr,
    /// The live updates of open pages.
    pub live: Live,
}

pub use live::Live;

impl Pages {
    /// Reads about failures.
    pub(crate) fn failures(&self) -> FailureReads<'_> {
        FailureReads { queues: &self.queues, tests: &self.flaky }
    }

    /// Whether browsers reach the server by https, so that cookies can be restricted to it.
    pub(crate) fn secure(&self) -> bool {
        self.public_url.starts_with("https://")
    }
}

/// Adds every page. Call it before adding catch-all routes.
pub fn configure(pages: Pages) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        config.app_data(Data::new(pages));
        routes::configure(config);
    }
}
