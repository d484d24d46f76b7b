#![doc = include_str!("../README.md")]
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
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;
pub mod token;
pub mod upload;
pub mod webhook;
mod words;
