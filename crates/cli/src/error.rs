//! Why a command failed.

use std::path::PathBuf;

use signalbox_client::ClientError;
use signalbox_domain::ids::InvalidName;
use thiserror::Error;

use crate::queue_set::SettingError;

/// Why a command that talks to a server failed.
#[derive(Debug, Error)]
pub enum CliError {
    /// The server could not be reached, refused the request or sent nonsense.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The repository is not HOST/OWNER/NAME.
    #[error(transparent)]
    Repository(#[from] InvalidName),
    /// A setting of a queue is not what was given.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A pattern of file names is malformed, or matches no file.
    #[error("{pattern:?}: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file could not be read.
    #[error("{}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}
