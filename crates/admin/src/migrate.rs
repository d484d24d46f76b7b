//! `signalbox migrate`.

use clap::Subcommand;
use serde_json::json;
use signalbox_config::without_password;
use signalbox_terminal::say;

use crate::AdminError;
use crate::database::existing_database;
use crate::program::{Program, config};

#[derive(Clone, Copy, Subcommand)]
pub enum Migrate {
    /// List applied and pending migrations.
    #[command(after_help = "Example: signalbox migrate status --json")]
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Apply pending migrations.
    #[command(after_help = "Example: signalbox migrate up --database sqlite://signalbox.db")]
    Up,
}

pub async fn migrate(program: &dyn Program, action: Option<Migrate>) -> Result<(), AdminError> {
    let config = config(program)?;
    if matches!(action, Some(Migrate::Status { .. })) {
        existing_database(&config)?;
    }
    config.make_data_dir()?;
    let url = config.database_url();
    let shown = without_password(&url);
    let failed = || AdminError::failed(shown.clone());
    let database = signalbox_persistence::connect(&url).await.map_err(failed())?;
    match action.unwrap_or(Migrate::Up) {
        Migrate::Status { json } => {
            let status = database.migration_status().await.map_err(failed())?;
            if json {
                let line = json!({ "applied": status.applied, "pending": status.pending });
                say(&line.to_string());
                return Ok(());
            }
            for version in &status.applied {
                say(&format!("{version} applied"));
            }
            for version in &status.pending {
                say(&format!("{version} pending"));
            }
        }
        Migrate::Up => {
            let applied = database.migrate().await.map_err(failed())?;
            say(&format!("applied {} migrations to {shown}", applied.len()));
        }
    }
    Ok(())
}
