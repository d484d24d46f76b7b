//! What is wrong with a configuration.

use std::path::PathBuf;

use thiserror::Error;

/// What is wrong with a configuration. The message names the place and never a secret.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A variable of the environment cannot be a setting.
    #[error("{variable}: {problem}")]
    Variable {
        /// Its name.
        variable: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Two variables set the same key.
    #[error("{first} and {second} are both set: keep one of them")]
    SetTwice {
        /// The first by the alphabet.
        first: String,
        /// The second.
        second: String,
    },
    /// A key is unknown, or its value cannot be right.
    #[error("{}{}{problem}", prefix(place), prefix(key))]
    Setting {
        /// The file or variable; empty when the value may come from any of them.
        place: String,
        /// The whole path of the key; empty for the document itself.
        key: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// The data folder could not be made.
    #[error("{}: {error}", folder.display())]
    DataDir {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The configuration in force could not be written as TOML.
    #[error("could not write the configuration as TOML: {0}")]
    Write(#[from] toml::ser::Error),
}

impl ConfigError {
    /// A value that cannot be right, wherever it comes from.
    pub(crate) fn setting(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Setting { place: String::new(), key: key.into(), problem: problem.into() }
    }

    /// The same, in that file or variable.
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
