//! `signalbox migrate`.

use clap::Subcommand;
use serde_json::json;

use crate::config::{Config, Flags, without_password};
use crate::wiring::chain;
use signalbox_terminal::say;

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Migrate {
    /// Say which migrations there are.
    #[command(after_help = "Example: signalbox migrate status --json")]
    Status {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Bring the schema up to date.
    #[command(after_help = "Example: signalbox migrate up --database sqlite://signalbox.db")]
    Up,
}

pub(crate) async fn migrate(flags: &Flags, action: Option<Migrate>) -> Result<(), String> {
    let config = Config::load(flags)?;
    config.make_data_dir()?;
    let url = config.database_url();
    let shown = without_password(&url);
    let words = |error: signalbox_persistence::ConnectError| chain(&shown, &error);
    let database = signalbox_persistence::connect(&url).await.map_err(words)?;
    match action.unwrap_or(Migrate::Up) {
        Migrate::Status { json } => {
            let status = database.migration_status().await.map_err(words)?;
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
            let applied = database.migrate().await.map_err(words)?;
            say(&format!("{} migrations applied to {shown}", applied.len()));
        }
    }
    Ok(())
}
