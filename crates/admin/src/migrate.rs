//! `signalbox migrate`.

use clap::Subcommand;
use serde_json::json;
use signalbox_config::without_password;
use signalbox_terminal::{Format, Progress, Table, say_json};

use crate::AdminError;
use crate::database::existing_database;
use crate::program::{Program, config};

#[derive(Clone, Copy, Subcommand)]
pub enum Migrate {
    /// List applied and pending migrations.
    #[command(after_help = "Example: signalbox migrate status --json")]
    Status {
        #[command(flatten)]
        format: Format,
    },
    /// Apply pending migrations.
    #[command(after_help = "Example: signalbox migrate up --database sqlite://signalbox.db")]
    Up {
        #[command(flatten)]
        format: Format,
    },
}

impl Migrate {
    /// The form of the output.
    const fn format(self) -> Format {
        match self {
            Self::Status { format } | Self::Up { format } => format,
        }
    }
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
    let format = action.map(Migrate::format).unwrap_or_default();
    match action {
        Some(Migrate::Status { .. }) => {
            let status = database.migration_status().await.map_err(failed())?;
            if format.is_json() {
                say_json(&json!({ "applied": status.applied, "pending": status.pending }));
                return Ok(());
            }
            let mut table = Table::new("no migrations found", &["MIGRATION", "STATE"]);
            for version in status.applied {
                table.row([version.into(), "applied".into()]);
            }
            for version in status.pending {
                table.row([version.into(), "pending".into()]);
            }
            table.print();
        }
        Some(Migrate::Up { .. }) | None => {
            let progress = Progress::endless("applying migrations");
            let applied = database.migrate().await.map_err(failed())?;
            drop(progress);
            format.say(&json!({ "applied": applied, "database": shown }), || {
                format!("applied {} migrations to {shown}", applied.len())
            });
        }
    }
    Ok(())
}
