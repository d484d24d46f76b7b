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
    /// The start of an import is malformed.
    #[error(
        "invalid time {text:?}: expected a duration such as 90d or 12h, or RFC 3339, such as \
         2026-11-21T04:50:22Z"
    )]
    Since {
        /// The text.
        text: String,
    },
    /// The layout of an import is malformed.
    #[error("invalid layout {pattern:?}: {problem}")]
    Layout {
        /// The layout.
        pattern: String,
        /// The problem.
        problem: String,
    },
    /// Files of an import are malformed, so nothing was sent.
    #[error("nothing was imported: {problems} problems in the files above")]
    Malformed {
        /// The number of problems, at most about 20.
        problems: usize,
    },
    /// An import stopped before its end.
    #[error("{error}; {sent} of {all} runs were sent: repeat the command to continue")]
    Interrupted {
        /// Runs that were sent.
        sent: usize,
        /// Runs of the import.
        all: usize,
        /// Why it stopped.
        error: Box<CliError>,
    },
    /// The server could not process runs of an import.
    #[error("{failed} runs were not imported")]
    NotImported {
        /// Their number.
        failed: u64,
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
