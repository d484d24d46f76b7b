//! `signalbox webhooks forget-key`.

use signalbox_terminal::say;

use crate::database::existing_database;
use crate::program::{Program, config};
use crate::{AdminError, open_database};

/// Forgets which key the secrets in the database are sealed with. The next server that starts
/// records its own.
pub async fn forget_key(program: &dyn Program) -> Result<(), AdminError> {
    let config = config(program)?;
    existing_database(&config)?;
    let database = open_database(&config, true).await?;
    match database.webhook_key().await.map_err(AdminError::failed("webhooks"))? {
        Some(key) => {
            let replaced = database.replace_webhook_key(&key, None).await;
            replaced.map_err(AdminError::failed("webhooks"))?;
            say(&format!("forgot the key {key}"));
        }
        None => say("no key is recorded"),
    }
    Ok(())
}
