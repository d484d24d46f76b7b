//! What a program provides: one folder for each context, one trait in each file. The promises of a
//! port are in the documentation of its trait; `signalbox-conformance` has a suite for each store
//! and for each port of a git host.
//!
//! Every port is also found here by its name, so that callers do not name a context. The stores of
//! a context are one group, such as [`QueueStores`]: a use case takes its groups or single ports,
//! and whoever reuses it implements these and no others.

pub mod account;
mod error;
pub mod flaky;
pub mod host;
pub mod queue;
pub mod runtime;
mod stores;
pub mod webhook;

pub use account::*;
pub use error::StoreError;
pub use flaky::*;
pub use host::*;
pub use queue::*;
pub use runtime::*;
pub use stores::Stores;
pub use webhook::*;
