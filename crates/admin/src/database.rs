//! Opens the configured database.

use std::path::{Path, PathBuf};

use signalbox_config::{Config, without_password};
use signalbox_persistence::Database;

use crate::AdminError;

/// Opens the database of a configuration, and creates its folder. With `migrate` pending migrations
/// are applied; without, they are an error.
pub async fn open_database(config: &Config, migrate: bool) -> Result<Database, AdminError> {
    config.make_data_dir()?;
    let url = config.database_url();
    let shown = without_password(&url);
    let failed = || AdminError::failed(shown.clone());
    let database = signalbox_persistence::connect(&url).await.map_err(failed())?;
    if migrate {
        database.migrate().await.map_err(failed())?;
        return Ok(database);
    }
    let pending = database.migration_status().await.map_err(failed())?.pending.len();
    if pending > 0 {
        return Err(AdminError::NotMigrated { database: shown, pending });
    }
    Ok(database)
}

/// The absolute path of the configured SQLite database when the file does not exist.
pub fn missing_database(config: &Config) -> Result<Option<PathBuf>, AdminError> {
    let url = config.absolute_database_url()?;
    let file = url.strip_prefix("sqlite://").map(Path::new);
    Ok(file.filter(|file| !file.exists()).map(Path::to_owned))
}

/// Refuses a configured SQLite database that does not exist: opening it would create it.
pub(crate) fn existing_database(config: &Config) -> Result<(), AdminError> {
    missing_database(config)?.map_or(Ok(()), |file| Err(AdminError::NoDatabase(file)))
}
