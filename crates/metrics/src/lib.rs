#![doc = include_str!("../README.md")]

mod catalog;
mod exposition;
mod gauges;
mod labels;
mod observer;
#[cfg(test)]
mod observer_tests;
mod page;

pub use catalog::{MetricRow, document, queue_metrics, server_metrics};
pub use exposition::QueueExposition;
pub use gauges::Sample;
pub use observer::PrometheusObserver;
