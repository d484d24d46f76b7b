//! The text format of queue metrics.

use crate::queue::QueueMetrics;

/// Writes queue metrics in the Prometheus text format 0.0.4.
pub trait Exposition: Send + Sync {
    /// Renders the nine metric families of the given queues, in the given order. Each family has
    /// one `# HELP` and one `# TYPE` line. Label values are escaped.
    fn render(&self, queues: &[QueueMetrics]) -> String;
}
