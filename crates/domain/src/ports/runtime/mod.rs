//! Ports of the runtime: time, ids, background work and observability.

mod agenda;
mod clock;
mod exposition;
mod id_source;
mod job_store;
mod notifier;
mod observer;
mod retention;

use std::sync::Arc;

pub use agenda::{Agenda, AgendaStore, Work};
pub use clock::Clock;
pub use exposition::Exposition;
pub use id_source::IdSource;
pub use job_store::{JOB_GRACE, JobLease, JobStore, LeasedJob};
pub use notifier::Notifier;
pub use observer::{Observed, Observer};
pub use retention::Retention;

/// The stores of background work in one database.
#[derive(Clone)]
pub struct RuntimeStores {
    /// When work is next due.
    pub agenda: Arc<dyn AgendaStore>,
    /// Periodic jobs.
    pub jobs: Arc<dyn JobStore>,
    /// Deletion of old history.
    pub retention: Arc<dyn Retention>,
}
