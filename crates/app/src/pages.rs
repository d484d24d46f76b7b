//! The state of the pages, with its adapters.

use std::sync::Arc;

use actix_web::{HttpMessage, HttpRequest};
use signalbox_config::Config;
use signalbox_domain::identity::AdmissionPolicy;
use signalbox_domain::ids::OrgSlug;
use signalbox_http::{RequestId, client_address};
use signalbox_services::{AuditService, Context, PageReads, Sessions, TokenService};
use signalbox_web::{EventInfo, Live, Pages, SignInWith};

use crate::error::AppError;
use crate::server_facts::Facts;
use crate::wiring::App;

/// The identity provider, if one is configured.
fn sign_in_with(config: &Config, context: &Context) -> Result<Option<Arc<SignInWith>>, AppError> {
    let Some(oidc) = &config.oidc else { return Ok(None) };
    let path = oidc.client_secret_file.display();
    let secret = std::fs::read_to_string(&oidc.client_secret_file)
        .map_err(AppError::failed(format!("oidc.client_secret_file: {path}")))?;
    let settings = signalbox_oidc::Settings {
        issuer: oidc.issuer.clone(),
        client_id: oidc.client_id.clone(),
        client_secret: secret.trim().to_owned(),
        scopes: oidc.scopes.clone(),
        groups_claim: oidc.groups_claim.clone(),
    };
    let provider = signalbox_oidc::Provider::new(settings, context.clock.clone());
    let policy = AdmissionPolicy {
        domains: oidc.allowed_domains.clone(),
        groups: oidc.allowed_groups.clone(),
        admins: oidc.admin_groups.clone(),
        submitters: oidc.submitter_groups.clone(),
    };
    Ok(Some(Arc::new(SignInWith {
        provider: Arc::new(provider.map_err(AppError::failed("oidc"))?),
        policy,
        org: OrgSlug::new(oidc.organization.as_str())?,
        label: oidc.label.clone(),
    })))
}

/// The state that the pages need.
pub(crate) fn pages(app: &App) -> Result<Pages, AppError> {
    let context = &app.context;
    let (queues, authenticator) = (app.queues.clone(), app.authenticator.clone());
    Ok(Pages {
        reads: Arc::new(PageReads::new(
            context.clone(),
            context.stores.flaky.tests.clone(),
            queues.clone(),
        )),
        queues,
        what_if: app.what_if.clone(),
        flaky: app.flaky.service.clone(),
        uploads: app.uploads.clone(),
        webhooks: app.webhooks.clone(),
        events: signalbox_webhooks::catalog::all().map(event).collect(),
        tokens: Arc::new(TokenService::new(context.clone())),
        sign_in_with: sign_in_with(&app.config, context)?,
        sessions: Arc::new(Sessions::new(context.clone(), authenticator.clone())),
        authenticator,
        audit: Arc::new(AuditService::new(context.clone())),
        server: Arc::new(Facts::of(app)),
        openapi: crate::openapi_document().into(),
        public_url: app.config.public_url(),
        ticket_url: app.config.flaky.ticket_url.clone(),
        public_tests: app.config.flaky.public_pages,
        request_id,
        client: client_address,
        live: Live::default(),
    })
}

fn event(event: &signalbox_webhooks::catalog::EventType) -> EventInfo {
    EventInfo {
        kind: event.name.to_owned(),
        description: event.description.to_owned(),
        schema: format!("{:#}", event.schema()),
    }
}

fn request_id(request: &HttpRequest) -> String {
    request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default()
}
