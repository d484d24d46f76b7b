//! Why the program ended.

use std::error::Error;
use std::net::SocketAddr;

use signalbox_admin::AdminError;
use signalbox_cli::CliError;
use signalbox_config::ConfigError;
use signalbox_demo::DemoError;
use signalbox_domain::ids::InvalidName;
use signalbox_hosts::ConnectError;
use signalbox_telemetry::TelemetryError;
use signalbox_terminal::Exit;
use thiserror::Error;

/// Why the program ended.
#[derive(Debug, Error)]
pub(crate) enum AppError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A command that opens the database failed.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A client command failed.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// The demo failed.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// A git host could not be connected.
    #[error(transparent)]
    Host(#[from] ConnectError),
    /// The export of traces could not start.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// A name in the configuration is invalid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A part of the server could not start.
    #[error("{what}")]
    Failed {
        /// The part, as the configuration or the log calls it.
        what: String,
        /// The error of that part.
        #[source]
        error: Box<dyn Error + Send + Sync>,
    },
    /// The standard output could not be written.
    #[error("could not write the output: {0}")]
    Output(&'static std::io::Error),
    /// The operating system refused a call that names no address and no file.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl AppError {
    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Admin(error) => error.exit(),
            Self::Cli(error) => error.exit(),
            Self::Config(_)
            | Self::Demo(_)
            | Self::Host(_)
            | Self::Telemetry(_)
            | Self::Name(_)
            | Self::Listen { .. }
            | Self::Failed { .. }
            | Self::Output(_)
            | Self::System(_) => Exit::Failure,
        }
    }

    /// A part of the server could not start.
    pub(crate) fn failed<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed { what: what.into(), error: error.into() }
    }
}
