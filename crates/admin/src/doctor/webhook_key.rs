//! Checks that the key file opens the webhook secrets in the database.

use std::path::Path;

use signalbox_config::Config;
use signalbox_persistence::connect;
use signalbox_terminal::{causes, chain};

use super::Finding;
use crate::Program;

/// `None` if the database cannot be read, which another check reports.
pub(super) async fn check(program: &dyn Program, config: &Config) -> Option<Finding> {
    const NAME: &str = "webhook_key";
    let (url, file) = (config.database_url(), config.webhook_keys());
    if url.strip_prefix("sqlite://").is_some_and(|path| !Path::new(path).exists()) {
        return None;
    }
    let database = connect(&url).await.ok()?;
    let shown = file.display();
    let Some(known) = database.webhook_key().await.ok()? else {
        return Some(Finding::good(NAME, format!("{shown} is created at the first start")));
    };
    let own = match program.webhook_key_fingerprints(&file) {
        Ok(own) => own,
        Err(error) => return Some(Finding::bad(NAME, causes(&*error))),
    };
    if own.contains(&known) {
        return Some(Finding::good(NAME, format!("{shown} opens the secrets in the database")));
    }
    let endpoints = database.stores().webhook.endpoints.every(None, 1).await;
    let endpoints = match endpoints {
        Ok(endpoints) => endpoints,
        Err(error) => return Some(Finding::bad(NAME, chain("webhooks", &error))),
    };
    let problem = format!("{shown} lacks the key {known}, which the secrets are sealed with");
    Some(if endpoints.is_empty() && database.is_embedded() && own.is_empty() {
        Finding::good(NAME, format!("{shown} is created at the next start"))
    } else {
        let advice = "copy the key file from a backup or from another server; if it is lost, run \
                      `signalbox webhooks forget-key` and rotate the secret of every endpoint";
        Finding::bad(NAME, format!("{problem}, so webhooks are off: {advice}"))
    })
}
