//! The settings of one host: read from its table, shown as a table, connected.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::{Table, Value};

use crate::{ConnectedHost, HostParts};

/// What is wrong with a table of the configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// The key below the table, such as `checks.concurrency`; empty for the table itself.
    pub key: String,
    /// What is wrong with its value, and what is allowed.
    pub problem: String,
}

impl SettingError {
    /// An error at a key.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

/// Why a host with good settings cannot be connected: a file that cannot be read, a credential of
/// the wrong form. The message names the file, never its content.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{host}: {problem}")]
pub struct ConnectError {
    /// The name by which clients call the host.
    pub host: String,
    /// What went wrong.
    pub problem: String,
}

/// The settings of one host.
pub trait HostSettings: Send + Sync {
    /// The settings as a table, with defaults and without `kind`.
    fn table(&self) -> Table;

    /// Connects the host. No call is made to it yet.
    fn connect(&self, parts: HostParts) -> Result<ConnectedHost, ConnectError>;
}

/// Reads settings from a table. The error has the key that is wrong.
pub fn parse<T: DeserializeOwned>(table: Table) -> Result<T, SettingError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let key = error.path().to_string();
        let key = if key == "." { String::new() } else { key };
        SettingError::new(key, error.inner().message())
    })
}

/// Settings as a table.
pub fn table(settings: &impl Serialize) -> Table {
    Table::try_from(settings).unwrap_or_default()
}
