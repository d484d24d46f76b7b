//! Opens the configured database.

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
