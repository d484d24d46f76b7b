//! Metrics in the formats of Prometheus: the callers' queue metrics, and the server's own.
//!
//! The two never meet. [`QueueExposition`] writes numbers that it is given; [`PrometheusObserver`]
//! keeps counters of its own. No route is here, and no query.

mod exposition;
mod observer;

pub use exposition::QueueExposition;
pub use observer::PrometheusObserver;
