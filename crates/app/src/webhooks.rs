//! The webhook services with their adapters.

use std::sync::Arc;

use signalbox_config::Config;
use signalbox_persistence::Database;
use signalbox_services::{Context, WebhookLimits, WebhookParts, WebhookService};
use signalbox_webhooks::{Guard, KnownEvents, Poster, PosterLimits, SystemLookup, Vault};

use crate::error::AppError;

/// Reads the key file, and creates it when it does not exist. Every server on a database must have
/// the key that the others seal with; otherwise it could not sign their messages.
pub(crate) async fn check_keys(config: &Config, database: &Database) -> Result<(), AppError> {
    let path = config.webhook_keys();
    let known = database.webhook_key().await.map_err(AppError::failed("webhooks"))?;
    if let Some(known) = &known
        && !path.exists()
    {
        let (found, known) = ("no key".to_owned(), known.clone());
        return Err(AppError::WebhookKey { file: path, found, known });
    }
    let vault = Vault::open(&path).map_err(AppError::failed("webhooks"))?;
    let own = vault.fingerprints().map_err(AppError::failed("webhooks"))?;
    let first = own.first().map(String::as_str).unwrap_or_default();
    let known = match known {
        Some(known) => known,
        None => database.keep_webhook_key(first).await.map_err(AppError::failed("webhooks"))?,
    };
    if !own.contains(&known) {
        let found = format!("the key {first}");
        return Err(AppError::WebhookKey { file: path, found, known });
    }
    if known != first {
        let replaced = database.replace_webhook_key(&known, Some(first)).await;
        replaced.map_err(AppError::failed("webhooks"))?;
    }
    Ok(())
}

/// Creates the webhook services. The keys are read when the first one is needed.
pub(crate) fn service(config: &Config, context: &Context) -> Result<WebhookService, AppError> {
    let settings = &config.webhooks;
    let vault = Arc::new(Vault::at(config.webhook_keys()));
    let guard = Guard::new(settings.networks()?, settings.allow_http);
    let limits = PosterLimits::default();
    let poster = Poster::new(guard, Arc::new(SystemLookup), vault.clone(), limits);
    let parts = WebhookParts {
        log: context.stores.webhook.event_log.clone(),
        catalog: Arc::new(KnownEvents),
        sender: Arc::new(poster.map_err(AppError::failed("webhooks"))?),
        secrets: vault,
    };
    let limits = WebhookLimits { endpoints: settings.endpoints, backlog: settings.backlog };
    Ok(WebhookService::new(context.clone(), parts, limits))
}
