//! Why a command failed.

use std::error::Error;
use std::path::{Path, PathBuf};

use signalbox_config::ConfigError;
use signalbox_domain::ids::InvalidName;
use signalbox_domain::ports::HostError;
use signalbox_hosts::HookError;
use signalbox_terminal::Exit;
use thiserror::Error;

/// Why a command that opens the database failed.
#[derive(Debug, Error)]
pub enum AdminError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The program could not start its services.
    #[error(transparent)]
    Program(Box<dyn Error + Send + Sync>),
    /// A part of the server failed.
    #[error("{what}")]
    Failed {
        /// The part: `organizations`, or the URL of a database without its password.
        what: String,
        /// The error of that part.
        #[source]
        error: Box<dyn Error + Send + Sync>,
    },
    /// A file or folder could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The operating system refused a call that names no file.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// An invalid name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A git host refused a call.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A hook could not be installed.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The database has pending migrations, and applying them is off.
    #[error("{database} has {pending} pending migrations: run `signalbox migrate up`")]
    NotMigrated {
        /// The URL without its password.
        database: String,
        /// How many migrations are pending.
        pending: usize,
    },
    /// The embedded database does not exist.
    #[error(
        "no database at {}: name the server's data folder with --data-dir or SIGNALBOX_DATA_DIR, or \
         make a new database with `signalbox init` or `signalbox serve`", .0.display()
    )]
    NoDatabase(PathBuf),
    /// A server uses the embedded database.
    #[error("a server is running on this database ({} is locked)", .0.display())]
    Locked(PathBuf),
    /// An invalid argument: its value, and what is allowed.
    #[error("{0}")]
    Argument(String),
    /// Something exists already.
    #[error("{0}")]
    Exists(String),
    /// An argument names something that does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A signal ended the command before it was done.
    #[error("interrupted before it was complete")]
    Interrupted,
    /// The command would do harm, such as replacing a file.
    #[error("{0}")]
    Refused(String),
}

impl AdminError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Argument(_) | Self::Name(_) => Exit::Usage,
            Self::NotFound(_) | Self::NoDatabase(_) => Exit::NotFound,
            Self::Exists(_) | Self::Locked(_) => Exit::Conflict,
            Self::Config(_)
            | Self::Program(_)
            | Self::Failed { .. }
            | Self::File { .. }
            | Self::System(_)
            | Self::Host(_)
            | Self::Hook(_)
            | Self::NotMigrated { .. }
            | Self::Interrupted
            | Self::Refused(_) => Exit::Failure,
        }
    }

    /// A part of the server failed.
    pub(crate) fn failed<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed { what: what.into(), error: error.into() }
    }

    /// A file or folder could not be read or written.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::File { path: path.to_owned(), error }
    }
}
