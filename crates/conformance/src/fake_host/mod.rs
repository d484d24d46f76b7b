//! A git host in memory, for tests of everything above the host ports.
//!
//! It stores branches, commits and pull requests, merges by path (a path that both sides changed is
//! a conflict; lines are not merged), derives object ids from contents, and decides checks by a
//! closure over the files. Tests plan faults, such as "the third landing finds the host
//! unavailable". It is not git: adapters are tested against the real git.

mod checks;
mod faults;
mod forge;
mod host;
mod looks;
mod model;
mod pull_requests;

pub use faults::{Call, Failure};
pub use forge::FakeForge;
pub use host::{FakeHost, FakeHosts};
pub use model::Tree;
