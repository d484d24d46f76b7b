//! What the demo needs from the program that it is part of.

use std::error::Error;
use std::net::TcpListener;

use async_trait::async_trait;
use signalbox_config::Config;
use signalbox_hosts::ConnectedHosts;
use signalbox_services::Context;

/// A program that can start a server.
#[async_trait]
pub trait Launch: Send + Sync {
    /// Starts a server of that configuration on a listener that is bound already.
    async fn launch(
        &self,
        config: Config,
        listener: TcpListener,
    ) -> Result<Box<dyn Running>, Box<dyn Error + Send + Sync>>;
}

/// A server that runs in this process.
#[async_trait]
pub trait Running: Send + Sync {
    /// The stores and everything else that its use cases work with.
    fn context(&self) -> &Context;

    /// Its git hosts.
    fn hosts(&self) -> &ConnectedHosts;

    /// Finishes the requests under way, and stops.
    async fn stop(self: Box<Self>);
}
