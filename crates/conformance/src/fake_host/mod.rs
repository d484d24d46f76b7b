//! One git host in memory, for tests of everything above the host port.
//!
//! It keeps branches, commits and pull requests, merges by path as git does (a path that both
//! sides changed is a conflict; there is no merging of lines), makes object ids from contents, and
//! runs checks by asking a closure about the tree. Faults are planned: "the third landing finds
//! the host unavailable". What it is not: git. Adapters are tested against the real thing.

mod checks;
mod faults;
mod forge;
mod host;
mod looks;
mod model;
mod pull_requests;
#[cfg(test)]
mod tests;

pub use faults::{Call, Failure};
pub use forge::FakeForge;
pub use host::{FakeHost, FakeHosts};
pub use model::Tree;
