//! The webhook services with their adapters.

use std::path::PathBuf;
use std::sync::Arc;

use signalbox_config::Config;
use signalbox_persistence::Database;
use signalbox_services::{Context, WebhookLimits, WebhookParts, WebhookService};
use signalbox_webhooks::{Guard, KnownEvents, Poster, PosterLimits, SystemLookup, Vault};
use thiserror::Error;

use crate::error::AppError;

/// The key file lacks the key that the secrets in the database are sealed with.
#[derive(Debug, Error)]
#[error(
    "webhooks are off: {} has {found}, but the secrets in this database are sealed with the key \
     {known}; copy the key file from a backup or from another server and restart; if that key is \
     lost, run `signalbox webhooks forget-key`, restart, and rotate the secret of every endpoint",
    file.display()
)]
pub(crate) struct LostKey {
    file: PathBuf,
    /// The key that it has.
    found: String,
    /// The fingerprint of the key that the database names.
    known: String,
}

/// Reads the key file, and creates it when it does not exist. Every server on a database must have
/// the key that the others seal with; otherwise it could not sign their messages. A server without
/// it runs with webhooks off: `None` if they are on.
pub(crate) async fn lost_key(
    config: &Config,
    database: &Database,
) -> Result<Option<LostKey>, AppError> {
    let path = config.webhook_keys();
    let mut known = database.webhook_key().await.map_err(AppError::failed("webhooks"))?;
    if let Some(key) = &known
        && !path.exists()
    {
        let endpoints = database.stores().webhook.endpoints.every(None, 1).await;
        let endpoints = endpoints.map_err(AppError::failed("webhooks"))?;
        if !database.is_embedded() || !endpoints.is_empty() {
            return Ok(Some(LostKey {
                file: path,
                found: "no key".to_owned(),
                known: key.clone(),
            }));
        }
        // No secret is sealed with it, and no other server can seal one.
        let replaced = database.replace_webhook_key(key, None).await;
        replaced.map_err(AppError::failed("webhooks"))?;
        known = None;
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
        return Ok(Some(LostKey { file: path, found, known }));
    }
    if known != first {
        let replaced = database.replace_webhook_key(&known, Some(first)).await;
        replaced.map_err(AppError::failed("webhooks"))?;
    }
    Ok(None)
}

/// Creates the webhook services. The keys are read when the first one is needed.
pub(crate) fn service(
    config: &Config,
    context: &Context,
    lost: Option<&LostKey>,
) -> Result<WebhookService, AppError> {
    let settings = &config.webhooks;
    let vault = Arc::new(match lost {
        Some(lost) => Vault::lost(lost.to_string()),
        None => Vault::at(config.webhook_keys()),
    });
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
