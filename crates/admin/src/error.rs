//! Why a command failed.

use std::error::Error;
use std::path::{Path, PathBuf};

use signalbox_config::ConfigError;
use signalbox_domain::ids::InvalidName;
use signalbox_domain::ports::HostError;
use signalbox_hosts::HookError;
use thiserror::Error;

/// Why a command that opens the database failed.
#[derive(Debug, Error)]
pub enum AdminError {
    /// The configuration is not good.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The program could not put the use cases together.
    #[error(transparent)]
    Program(Box<dyn Error + Send + Sync>),
    /// A part of the server failed.
    #[error("{what}")]
    Failed {
        /// The part: `organizations`, or the URL of a database without its password.
        what: String,
        /// What it says.
        #[source]
        error: Box<dyn Error + Send + Sync>,
    },
    /// A file or folder could not be used.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The system refused something that has no file.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// A name has the wrong form.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A git host refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A hook could not be installed.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The database needs migrations, and they are not to be applied.
    #[error("{database} needs {pending} migrations: run `signalbox migrate up`")]
    NotMigrated {
        /// The URL without its password.
        database: String,
        /// How many.
        pending: usize,
    },
    /// A server has the embedded database.
    #[error("a server is running on this database ({} is locked)", .0.display())]
    Locked(PathBuf),
    /// An argument cannot be right: which one, and what is allowed.
    #[error("{0}")]
    Argument(String),
    /// What an argument names does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The command would do harm, such as replacing a file.
    #[error("{0}")]
    Refused(String),
}

impl AdminError {
    /// A part of the server failed.
    pub(crate) fn failed<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed { what: what.into(), error: error.into() }
    }

    /// A file or folder could not be used.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::File { path: path.to_owned(), error }
    }
}
