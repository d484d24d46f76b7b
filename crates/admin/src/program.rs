//! What the commands need from the program.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_config::{Config, Flags};
use signalbox_domain::ports::{BlobStore, Clock};
use signalbox_domain::queue::SharedPolicy;
use signalbox_hosts::{ConnectedHosts, Kinds};
use signalbox_services::{Context, QueueService, UploadService};
use signalbox_terminal::note;

use crate::AdminError;
use crate::database::{existing_database, missing_database};

/// The services on the configured database. A server may run on it at the same time.
pub struct Offline {
    /// The configuration.
    pub config: Config,
    /// The stores and everything else that use cases work with.
    pub context: Context,
    /// The hosts of the configuration.
    pub hosts: Arc<ConnectedHosts>,
    /// The use cases of merge queues.
    pub queues: Arc<QueueService>,
    /// The use cases of uploads.
    pub uploads: Arc<UploadService>,
}

/// The program that the commands are part of.
#[async_trait]
pub trait Program: Send + Sync {
    /// The flags of every command.
    fn flags(&self) -> &Flags;

    /// The kinds of git hosts that it supports.
    fn kinds(&self) -> Kinds;

    /// The clock.
    fn clock(&self) -> Arc<dyn Clock>;

    /// The policy of all queues.
    fn policy(&self) -> SharedPolicy;

    /// The store of the bytes of uploads.
    fn blobs(&self, config: &Config) -> Result<Arc<dyn BlobStore>, Box<dyn Error + Send + Sync>>;

    /// The fingerprints of the keys in a file that seals webhook secrets, the one that seals first;
    /// none if the file does not exist.
    fn webhook_key_fingerprints(
        &self,
        file: &Path,
    ) -> Result<Vec<String>, Box<dyn Error + Send + Sync>>;

    /// Starts the services of a configuration, and applies pending migrations of its database.
    async fn open(&self, config: Config) -> Result<Offline, Box<dyn Error + Send + Sync>>;
}

/// Reads the configuration.
pub(crate) fn config(program: &dyn Program) -> Result<Config, AdminError> {
    Ok(Config::load(program.flags(), program.kinds())?)
}

/// The services on the configured database, with all migrations applied. A SQLite database must
/// exist.
pub(crate) async fn open(program: &dyn Program) -> Result<Offline, AdminError> {
    let config = config(program)?;
    existing_database(&config)?;
    program.open(config).await.map_err(AdminError::Program)
}

/// The same for commands that set up a server. Where a configuration, a folder or a database is
/// named, they create a missing SQLite database and report it. The default folder is often just the
/// wrong one.
pub(crate) async fn open_for_setup(program: &dyn Program) -> Result<Offline, AdminError> {
    let config = config(program)?;
    let flags = program.flags();
    if flags.config.is_none() && config.data_dir.is_none() && config.database.url.is_none() {
        existing_database(&config)?;
    }
    open_or_create(program, config).await
}

/// The services on the configured database; a missing SQLite database is created, with a message.
pub(crate) async fn open_or_create(
    program: &dyn Program,
    config: Config,
) -> Result<Offline, AdminError> {
    let missing = missing_database(&config)?;
    let app = program.open(config).await.map_err(AdminError::Program)?;
    if let Some(file) = missing {
        note(&format!("created a new database: {}", file.display()));
    }
    Ok(app)
}
