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

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::web::{Data, ServiceConfig};
use async_trait::async_trait;
use signalbox_domain::identity::AdmissionPolicy;
use signalbox_domain::ids::OrgSlug;
use signalbox_domain::ports::IdentityProvider;
use signalbox_services::{
    AuditService, Authenticator, FlakyService, PageReads, QueueService, Sessions, TokenService,
    UploadService, WebhookService,
};

pub use view::status::ServerFact;

/// What the page about the server shows.
#[async_trait]
pub trait ServerFacts: Send + Sync {
    /// The facts as they are now, the most important first.
    async fn facts(&self) -> Vec<ServerFact>;
}

/// An event that webhooks are told.
#[derive(Clone, Debug)]
pub struct EventInfo {
    /// Its public name.
    pub kind: String,
    /// When it is sent, in one sentence.
    pub description: String,
    /// The JSON Schema of its payload, indented.
    pub schema: String,
}

/// An identity provider that people sign in with.
pub struct SignInWith {
    /// The provider.
    pub provider: Arc<dyn IdentityProvider>,
    /// Who may sign in, and as what.
    pub policy: AdmissionPolicy,
    /// Where they belong.
    pub org: OrgSlug,
    /// What it is called on the page.
    pub label: String,
}

/// What the pages work with.
#[derive(Clone)]
pub struct Pages {
    /// The use cases of queues.
    pub queues: Arc<QueueService>,
    /// The use cases of flaky tests.
    pub flaky: Arc<FlakyService>,
    /// The use cases of uploads.
    pub uploads: Arc<UploadService>,
    /// What pages show beside the replies of the API.
    pub reads: Arc<PageReads>,
    /// The use cases of webhooks.
    pub webhooks: Arc<WebhookService>,
    /// The events that webhooks are told.
    pub events: Arc<[EventInfo]>,
    /// Tokens of an organization.
    pub tokens: Arc<TokenService>,
    /// The identity provider that people sign in with, if there is one.
    pub sign_in_with: Option<Arc<SignInWith>>,
    /// Signing in.
    pub sessions: Arc<Sessions>,
    /// Who changed what.
    pub audit: Arc<AuditService>,
    /// Who calls with a token.
    pub authenticator: Arc<Authenticator>,
    /// What the server says of itself.
    pub server: Arc<dyn ServerFacts>,
    /// The description of the API, as JSON.
    pub openapi: Arc<str>,
    /// The address by which others reach the server, without a slash at its end.
    pub public_url: String,
    /// The address of a ticket, with `{id}` in it.
    pub ticket_url: Option<String>,
    /// Whether anybody may read the pages of tests.
    pub public_tests: bool,
    /// The id of a request, for pages about errors.
    pub request_id: fn(&HttpRequest) -> String,
    /// What changed, told to open pages.
    pub live: Live,
    /// Counts attempts to sign in.
    pub attempts: Attempts,
}

pub use live::Live;
pub use routes::sign_in::Attempts;

impl Pages {
    /// Whether browsers reach the server by https, so that cookies may be bound to it.
    pub(crate) fn secure(&self) -> bool {
        self.public_url.starts_with("https://")
    }
}

/// Adds every page. To be called before routes that answer every address.
pub fn configure(pages: Pages) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        config.app_data(Data::new(pages));
        routes::configure(config);
    }
}
