//! What every use case works with.

use std::sync::Arc;

use signalbox_domain::ports::{Clock, EventWriter, Hosts, IdSource, Notifier, Observer, Stores};

/// The adapters, as the app wired them.
#[derive(Clone)]
pub struct Context {
    /// The database.
    pub stores: Stores,
    /// The git hosts.
    pub hosts: Arc<dyn Hosts>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// Metrics and logs.
    pub observer: Arc<dyn Observer>,
    /// Payloads of public events.
    pub events: Arc<dyn EventWriter>,
    /// Wake-ups of background work.
    pub notifier: Arc<dyn Notifier>,
}
