#![doc = include_str!("../README.md")]

mod exposition;
mod observer;

pub use exposition::QueueExposition;
pub use observer::PrometheusObserver;
