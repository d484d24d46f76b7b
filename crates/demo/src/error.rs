//! Why the demo stopped.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use signalbox_client::ClientError;
use signalbox_domain::ids::InvalidName;
use signalbox_domain::ports::{HostError, StoreError};
use thiserror::Error;

/// Why the demo stopped.
#[derive(Debug, Error)]
pub enum DemoError {
    /// An operation of the API failed.
    #[error("{operation}: {error}")]
    Call {
        /// The operation.
        operation: String,
        /// The error of the client.
        error: ClientError,
    },
    /// The client could not be set up.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server could not start.
    #[error(transparent)]
    Launch(Box<dyn Error + Send + Sync>),
    /// A use case failed.
    #[error(transparent)]
    Service(Box<dyn Error + Send + Sync>),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A file or folder could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The folder has the repository of an earlier demo.
    #[error("{} already exists; choose an empty folder, or omit --data-dir to use a temporary one", .0.display())]
    NotEmpty(PathBuf),
    /// The operating system refused a call that names no file.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// git cannot be run.
    #[error("could not run git: {0}")]
    NoGit(std::io::Error),
    /// git failed.
    #[error("git {command}: {problem}")]
    Git {
        /// Its arguments.
        command: String,
        /// Its standard error.
        problem: String,
    },
    /// A name that the demo uses is invalid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The git host refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A scenario does not fit its repository.
    #[error("{0}")]
    Story(String),
}

impl DemoError {
    /// A file or folder could not be read or written.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::File { path: path.to_owned(), error }
    }
}
