//! The GitHub adapter on a double with a real repository behind it: its candidates are git's own
//! merges, its landings move the target to what was tested or not at all, and every request that it
//! makes is one that the host's published description allows.
#![expect(clippy::disallowed_methods, reason = "tests make ids and clocks of their own")]

mod access;
mod acting;
mod checks_runner;
mod composition;
mod conformance;
mod forge;
mod limits;
mod people;
mod reading;
mod recomputed;
mod reporters;
mod webhooks;
mod world;
