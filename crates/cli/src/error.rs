//! Why a command failed.

use std::path::PathBuf;

use signalbox_client::ClientError;
use signalbox_domain::ids::InvalidName;
use thiserror::Error;

use crate::queue_set::SettingError;

/// Why a client command failed.
#[derive(Debug, Error)]
pub enum CliError {
    /// The server could not be reached, refused the request or sent an invalid response.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The repository is not in the form HOST/OWNER/NAME.
    #[error(transparent)]
    Repository(#[from] InvalidName),
    /// An invalid setting of a queue.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A file pattern is malformed, or matches no file.
    #[error("{pattern:?}: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The problem.
        problem: String,
    },
    /// A file could not be read.
    #[error("{}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
}
