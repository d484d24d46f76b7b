#![doc = include_str!("../README.md")]

mod exposition;
mod observer;
mod page;

pub use exposition::QueueExposition;
pub use observer::PrometheusObserver;
