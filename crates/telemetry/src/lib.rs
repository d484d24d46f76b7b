#![doc = include_str!("../README.md")]

mod logs;
mod observer;
mod traces;

pub use logs::start;
pub use observer::LoggingObserver;
pub use traces::{Exporting, TelemetryError};
