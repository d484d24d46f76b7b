//! Resolves names, so that connections go only to checked addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Guard;

/// Looks names up.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// The addresses that a name leads to now.
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// Asks the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect())
    }
}

/// Resolves names for the HTTP client: a connection is made to addresses that were checked, and to
/// nothing else. There is no second look between the check and the connection.
pub(crate) struct GuardedResolver {
    pub(crate) guard: Guard,
    pub(crate) lookup: Arc<dyn Lookup>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, lookup) = (self.guard.clone(), self.lookup.clone());
        Box::pin(async move {
            let found = lookup.addresses(name.as_str()).await?;
            guard.check_all(&found)?;
            let checked = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(checked) as Addrs)
        })
    }
}
