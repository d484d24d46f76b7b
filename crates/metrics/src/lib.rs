#![doc = include_str!("../README.md")]

mod catalogue;
mod exposition;
mod gauges;
mod labels;
mod observer;
#[cfg(test)]
mod observer_tests;
mod page;

pub use catalogue::{MetricRow, document, queue_metrics, server_metrics};
pub use exposition::QueueExposition;
pub use gauges::Sample;
pub use observer::PrometheusObserver;
