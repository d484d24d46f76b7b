//! `signalbox migrate`.

use clap::Subcommand;

use crate::config::{Config, Flags, without_password};
use crate::terminal::say;
use crate::wiring::chain;

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Migrate {
    /// Say which migrations there are.
    Status,
    /// Bring the schema up to date.
    Up,
}

pub(crate) async fn migrate(flags: &Flags, action: Option<Migrate>) -> Result<(), String> {
    let url = Config::load(flags)?.database_url()?;
    let shown = without_password(&url);
    let words = |error: signalbox_persistence::ConnectError| chain(&shown, &error);
    let database = signalbox_persistence::connect(&url).await.map_err(words)?;
    match action.unwrap_or(Migrate::Up) {
        Migrate::Status => {
            let status = database.migration_status().await.map_err(words)?;
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
