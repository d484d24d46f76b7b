//! Why the program ended.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;

use signalbox_admin::AdminError;
use signalbox_cli::CliError;
use signalbox_config::ConfigError;
use signalbox_demo::DemoError;
use signalbox_domain::ids::InvalidName;
use signalbox_hosts::ConnectError;
use signalbox_telemetry::TelemetryError;
use thiserror::Error;

/// Why the program ended.
#[derive(Debug, Error)]
pub(crate) enum AppError {
    /// The configuration is not good.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A command that opens the database failed.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A command that talks to a server failed.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// The demo could not go on.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// A git host cannot be connected.
    #[error(transparent)]
    Host(#[from] ConnectError),
    /// Traces cannot be exported.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// A name in the configuration has the wrong form.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The key file is not the one that the secrets in the database are sealed with.
    #[error(
        "the key file of webhooks {} has {found}, but the secrets in this database are sealed with \
         the key {known}: copy the key file of a server that works on this database; if that key \
         is lost, run `signalbox webhooks forget-key` and rotate the secret of every endpoint",
        file.display()
    )]
    WebhookKey {
        /// The key file.
        file: PathBuf,
        /// What it has.
        found: String,
        /// The fingerprint of the key that the database names.
        known: String,
    },
    /// A part of the server could not start.
    #[error("{what}")]
    Failed {
        /// The part, as the configuration or the log calls it.
        what: String,
        /// What it says.
        #[source]
        error: Box<dyn Error + Send + Sync>,
    },
    /// The system refused something that has no address and no file.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl AppError {
    /// A part of the server could not start.
    pub(crate) fn failed<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed { what: what.into(), error: error.into() }
    }
}
