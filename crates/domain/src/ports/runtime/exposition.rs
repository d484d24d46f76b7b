//! Metrics as text.

use crate::queue::QueueMetrics;

/// Writes queue metrics in the Prometheus text format 0.0.4.
pub trait Exposition: Send + Sync {
    /// The nine families of all given queues, in the order given, each family headed once by its
    /// `# HELP` and `# TYPE` lines. Label values are escaped.
    fn render(&self, queues: &[QueueMetrics]) -> String;
}
