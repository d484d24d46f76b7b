#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! | module | contents |
//! |---|---|
//! | [`queue`] | the merge queue: [`Queue`](queue::Queue), commands, facts, effects, settings, reasons, views, timelines and metrics |
//! | [`flaky`] | flaky test detection: monitors, quarantine, labels, clusters of failures |
//! | [`upload`] | uploads of test results, before they become results |
//! | [`webhook`] | webhook endpoints, messages, and their retry schedule |
//! | [`token`], [`session`], [`identity`] | callers: API tokens with scopes, sessions of the pages, identities of a provider |
//! | [`audit`] | records of administrative changes |
//! | [`ids`], [`time`] | validated names and ids, timestamps and spans |
//! | [`shares`] | shares of a limited amount, such as bytes or places |
//! | `ports` | the traits that a program implements: stores, git hosts, checks runners, the clock |
//! | `testing` | helpers for tests |
//!
//! The use cases on top of the ports (load, decide, commit) are in `signalbox-services`, the suites
//! that check an adapter against the contract of its port in `signalbox-conformance`, and the
//! labels and sentences of the user interface in `signalbox-wording`.
#![warn(missing_docs)]
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

pub mod audit;
pub mod flaky;
pub mod identity;
pub mod ids;
#[cfg(feature = "ports")]
pub mod ports;
pub mod queue;
pub mod session;
pub mod shares;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;
pub mod token;
pub mod upload;
pub mod webhook;
mod words;
