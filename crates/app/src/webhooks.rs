//! The use cases of webhooks on their adapters.

use std::sync::Arc;

use signalbox_domain::service::{Context, WebhookLimits, WebhookParts, WebhookService};
use signalbox_webhooks::{Guard, KnownEvents, Poster, PosterLimits, SystemLookup, Vault};

use crate::config::Config;
use crate::wiring::chain;

/// Reads the file with the keys, and makes it when it is not there.
pub(crate) fn check_keys(config: &Config) -> Result<(), String> {
    Vault::open(&config.webhook_keys()).map(drop).map_err(|error| chain("webhooks", &error))
}

/// Puts the use cases of webhooks together. The keys are read when the first one is needed.
pub(crate) fn service(config: &Config, context: &Context) -> Result<WebhookService, String> {
    let settings = &config.webhooks;
    let vault = Arc::new(Vault::at(config.webhook_keys()));
    let guard = Guard::new(settings.networks()?, settings.allow_http);
    let limits = PosterLimits::default();
    let poster = Poster::new(guard, Arc::new(SystemLookup), vault.clone(), limits);
    let parts = WebhookParts {
        log: context.stores.event_log.clone(),
        catalogue: Arc::new(KnownEvents),
        sender: Arc::new(poster.map_err(|error| chain("webhooks", &error))?),
        secrets: vault,
    };
    let limits = WebhookLimits { endpoints: settings.endpoints, backlog: settings.backlog };
    Ok(WebhookService::new(context.clone(), parts, limits))
}
