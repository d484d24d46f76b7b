//! Stores in memory, a git host in memory and what else the tests of Signalbox share. Only tests
//! depend on this crate.

pub mod fake_host;
pub mod memory;
