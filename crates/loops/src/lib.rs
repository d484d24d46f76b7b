//! Keeps background work running. What the work is, the app says: it starts a loop for each kind
//! and hands it the function to run.
//!
//! - [`woken`] runs work when a bell rings, because a commit or the agenda says that it is due;
//! - [`every`] runs work of this machine periodically;
//! - [`schedule`] runs periodic jobs that only one of the servers on a database runs at a time;
//! - [`supervise`] restarts a loop after a panic.

mod backoff;
mod periodic;
mod scheduler;
mod supervise;
mod woken;

pub use backoff::Backoff;
pub use periodic::every;
pub use scheduler::{Job, Leases, schedule};
pub use supervise::supervise;
pub use woken::{FALLBACK, RETRY, woken};
