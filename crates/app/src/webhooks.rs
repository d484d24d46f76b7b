//! The use cases of webhooks on their adapters.

use std::path::Path;
use std::sync::Arc;

use signalbox_persistence::Database;
use signalbox_services::{Context, WebhookLimits, WebhookParts, WebhookService};
use signalbox_terminal::say;
use signalbox_webhooks::{Guard, KnownEvents, Poster, PosterLimits, SystemLookup, Vault};

use crate::config::{Config, Flags};
use crate::wiring::{chain, open_database};

/// Reads the file with the keys, and makes it when it is not there. Every server on a database must
/// seal with the same key, or else read it: with another one it could not sign what others sealed.
pub(crate) async fn check_keys(config: &Config, database: &Database) -> Result<(), String> {
    let path = config.webhook_keys();
    let failed = |error: &dyn std::error::Error| chain("webhooks", error);
    let known = database.webhook_key().await.map_err(|error| failed(&error))?;
    if let Some(known) = &known
        && !path.exists()
    {
        return Err(another_key(&path, "no key", known));
    }
    let vault = Vault::open(&path).map_err(|error| failed(&error))?;
    let own = vault.fingerprints().map_err(|error| failed(&error))?;
    let first = own.first().map(String::as_str).unwrap_or_default();
    let known = match known {
        Some(known) => known,
        None => database.keep_webhook_key(first).await.map_err(|error| failed(&error))?,
    };
    if !own.contains(&known) {
        return Err(another_key(&path, &format!("the key {first}"), &known));
    }
    if known != first {
        let replaced = database.replace_webhook_key(&known, Some(first)).await;
        replaced.map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn another_key(path: &Path, found: &str, known: &str) -> String {
    format!(
        "the key file of webhooks {} has {found}, but the secrets in this database are sealed with \
         the key {known}: copy the key file of a server that works on this database; if that key is \
         lost, run `signalbox webhooks forget-key` and rotate the secret of every endpoint",
        path.display()
    )
}

/// Forgets which key the database's secrets are sealed with. The next server that starts records
/// its own.
pub(crate) async fn forget_key(flags: &Flags) -> Result<(), String> {
    let database = open_database(&Config::load(flags)?, true).await?;
    let failed = |error: &dyn std::error::Error| chain("webhooks", error);
    match database.webhook_key().await.map_err(|error| failed(&error))? {
        Some(key) => {
            let replaced = database.replace_webhook_key(&key, None).await;
            replaced.map_err(|error| failed(&error))?;
            say(&format!("the key {key} is forgotten"));
        }
        None => say("no key is known yet"),
    }
    Ok(())
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
