//! Errors of a configuration.

use std::path::PathBuf;

use thiserror::Error;

/// An invalid configuration. The message names the setting and never a secret.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// An environment variable is not a valid setting.
    #[error("{variable}: {problem}")]
    Variable {
        /// Its name.
        variable: String,
        /// The problem.
        problem: String,
    },
    /// Two environment variables set the same key.
    #[error("{first} and {second} are both set: keep one of them")]
    SetTwice {
        /// The first in alphabetical order.
        first: String,
        /// The second.
        second: String,
    },
    /// A key is unknown, or its value is invalid.
    #[error("{}{}{problem}", prefix(place), prefix(key))]
    Setting {
        /// The file or variable; empty when the source is unknown.
        place: String,
        /// The full path of the key; empty for the document itself.
        key: String,
        /// The problem, and what is allowed.
        problem: String,
    },
    /// The data folder could not be created.
    #[error("{}: {error}", folder.display())]
    DataDir {
        /// The folder.
        folder: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The effective configuration could not be written as TOML.
    #[error("could not write the configuration as TOML: {0}")]
    Write(#[from] toml::ser::Error),
}

impl ConfigError {
    /// An invalid value from an unknown source.
    pub(crate) fn setting(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Setting { place: String::new(), key: key.into(), problem: problem.into() }
    }

    /// An invalid value in that file or variable.
    pub(crate) fn at(self, new: &str) -> Self {
        match self {
            Self::Setting { key, problem, .. } => {
                Self::Setting { place: new.to_owned(), key, problem }
            }
            other => other,
        }
    }
}

fn prefix(part: &str) -> String {
    if part.is_empty() { String::new() } else { format!("{part}: ") }
}
