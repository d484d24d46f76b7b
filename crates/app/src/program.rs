//! What commands and the demo need from this program: its wiring.

use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_admin::{Offline, Program, open_database};
use signalbox_config::{Config, Flags};
use signalbox_demo::{Launch, Running};
use signalbox_domain::ports::{BlobStore, Clock};
use signalbox_domain::queue::SharedPolicy;
use signalbox_hosts::{ConnectedHosts, Kinds};
use signalbox_services::Context;
use signalbox_webhooks::Vault;

use crate::adapters::SystemClock;
use crate::hosts::KINDS;
use crate::serve::Server;
use crate::wiring::App;

type Failure = Box<dyn Error + Send + Sync>;

/// This program, with the flags of every command and the policy of all queues.
pub(crate) struct Signalbox(pub(crate) Flags, pub(crate) SharedPolicy);

#[async_trait]
impl Program for Signalbox {
    fn flags(&self) -> &Flags {
        &self.0
    }

    fn kinds(&self) -> Kinds {
        KINDS
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn policy(&self) -> SharedPolicy {
        self.1.clone()
    }

    fn blobs(&self, config: &Config) -> Result<Arc<dyn BlobStore>, Failure> {
        Ok(crate::uploads::blobs(config)?)
    }

    fn webhook_key_fingerprints(&self, file: &Path) -> Result<Vec<String>, Failure> {
        if !file.exists() {
            return Ok(Vec::new());
        }
        Ok(Vault::open(file)?.fingerprints()?)
    }

    async fn open(&self, config: Config) -> Result<Offline, Failure> {
        let database = open_database(&config, true).await?;
        let App { config, context, hosts, queues, uploads, .. } =
            App::new(config, database, self.1.clone(), None).await?;
        Ok(Offline { config, context, hosts, queues, uploads })
    }
}

/// A server of the demo.
struct DemoServer {
    app: Arc<App>,
    server: Server,
}

#[async_trait]
impl Launch for Signalbox {
    async fn launch(
        &self,
        config: Config,
        listener: TcpListener,
    ) -> Result<Box<dyn Running>, Failure> {
        signalbox_telemetry::start(&config)?;
        let database = open_database(&config, true).await?;
        let app = Arc::new(App::new(config, database, self.1.clone(), None).await?);
        let server = Server::start(app.clone(), listener).await?;
        Ok(Box::new(DemoServer { app, server }))
    }
}

#[async_trait]
impl Running for DemoServer {
    fn context(&self) -> &Context {
        &self.app.context
    }

    fn hosts(&self) -> &ConnectedHosts {
        &self.app.hosts
    }

    async fn stop(self: Box<Self>) {
        self.server.stop().await;
    }
}
