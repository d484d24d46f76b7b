//! The settings of one host: parsed from its table, shown as a table, and connected.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::{Table, Value};

use crate::{ConnectedHost, HostParts};

/// An invalid table of the configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// The key below the table, such as `checks.concurrency`; empty for the table itself.
    pub key: String,
    /// The problem of its value, and what is allowed.
    pub problem: String,
}

impl SettingError {
    /// An error at a key.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

/// Why a host with valid settings cannot be connected: an unreadable file, or a malformed
/// credential. The message names the file, never its content.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{host}: {problem}")]
pub struct ConnectError {
    /// The name of the host in the API.
    pub host: String,
    /// The error.
    pub problem: String,
}

/// The settings of one host.
pub trait HostSettings: Send + Sync {
    /// The settings as a table, with defaults and without `kind`.
    fn table(&self) -> Table;

    /// Connects the host. No call is made to it yet.
    fn connect(&self, parts: HostParts) -> Result<ConnectedHost, ConnectError>;
}

/// Reads settings from a table. The error has the invalid key.
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
