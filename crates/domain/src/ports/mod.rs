//! Ports: the traits that a program implements, one folder per context and one trait per file. The
//! documentation of a trait is its contract; `signalbox-conformance` has a suite for each store and
//! for each port of a git host.
//!
//! Every port is re-exported here, so that callers need not name a context. The stores of a context
//! form a group, such as [`QueueStores`]. A use case takes groups or single ports, so a program
//! implements only the ports that it uses.

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
