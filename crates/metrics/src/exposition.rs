//! The nine families of a merge queue in the Prometheus text format 0.0.4.

use std::fmt::Write;

use signalbox_domain::ports::Exposition;
use signalbox_domain::queue::{BUCKETS_SECONDS, Histogram, QueueMetrics};

/// Writes queue metrics. The `_1h` families cover a sliding hour: gauges by their meaning, so
/// `rate()` says nothing about them.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueExposition;

impl Exposition for QueueExposition {
    fn render(&self, queues: &[QueueMetrics]) -> String {
        let mut page = Page::default();
        page.family("mq_depth_current", "gauge", "Pull requests in the line.");
        page.gauges("mq_depth_current", queues, |it| it.depth);
        page.family("mq_awaiting_mergeability", "gauge", "Pull requests that are not ready yet.");
        page.gauges("mq_awaiting_mergeability", queues, |it| it.awaiting_mergeability);
        page.family("mq_testing_slots_active", "gauge", "Pull requests under test.");
        page.gauges("mq_testing_slots_active", queues, |it| it.testing_slots_active);
        page.family(
            "mq_pr_conclusions_1h_total",
            "gauge",
            "Pull requests that left in the last hour, by conclusion.",
        );
        for queue in queues {
            for (conclusion, count) in queue.conclusions {
                let labels = labels(queue, Some(("conclusion", conclusion)));
                page.sample("mq_pr_conclusions_1h_total", &labels, count);
            }
        }
        page.family("mq_pr_restarts_1h_total", "gauge", "Restarts of tests in the last hour.");
        page.gauges("mq_pr_restarts_1h_total", queues, |it| it.restarts);
        page.family(
            "mq_pr_wait_duration_1h_seconds",
            "histogram",
            "Time from entering the line, or a restart, to the start of a test.",
        );
        for queue in queues {
            page.histogram("mq_pr_wait_duration_1h_seconds", queue, None, &queue.wait);
        }
        page.family("mq_pr_test_duration_1h_seconds", "histogram", "Time under test.");
        for queue in queues {
            page.histogram("mq_pr_test_duration_1h_seconds", queue, None, &queue.test);
        }
        let family = "mq_pr_time_in_queue_1h_seconds";
        page.family(family, "histogram", "Time from entering the line to leaving, by conclusion.");
        for queue in queues {
            for (conclusion, histogram) in &queue.time_in_queue {
                page.histogram(family, queue, Some(("conclusion", *conclusion)), histogram);
            }
        }
        let family = "mq_pr_state_duration_1h_seconds";
        page.family(family, "histogram", "Time in each state.");
        for queue in queues {
            for (state, histogram) in &queue.state_duration {
                page.histogram(family, queue, Some(("state", *state)), histogram);
            }
        }
        page.0
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _written = self.0.write_fmt(line);
        self.0.push('\n');
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        self.line(format_args!("{name}{{{labels}}} {value}"));
    }

    fn gauges(&mut self, name: &str, queues: &[QueueMetrics], value: fn(&QueueMetrics) -> u64) {
        for queue in queues {
            self.sample(name, &labels(queue, None), value(queue));
        }
    }

    fn histogram(
        &mut self,
        name: &str,
        queue: &QueueMetrics,
        extra: Option<(&str, &str)>,
        histogram: &Histogram,
    ) {
        let labels = labels(queue, extra);
        let bucket = format!("{name}_bucket");
        for (bound, count) in BUCKETS_SECONDS.iter().zip(histogram.buckets) {
            self.sample(&bucket, &format!("{labels},le=\"{bound}\""), count);
        }
        self.sample(&bucket, &format!("{labels},le=\"+Inf\""), histogram.count);
        let (seconds, rest) = (histogram.sum_micros / 1_000_000, histogram.sum_micros % 1_000_000);
        self.sample(&format!("{name}_sum"), &labels, format_args!("{seconds}.{rest:06}"));
        self.sample(&format!("{name}_count"), &labels, histogram.count);
    }
}

fn labels(queue: &QueueMetrics, extra: Option<(&str, &str)>) -> String {
    let mut labels = format!(
        "repo=\"{}\",branch=\"{}\",queue_type=\"{}\"",
        escaped(&queue.repo),
        escaped(&queue.branch),
        queue.queue_type
    );
    if let Some((name, value)) = extra {
        let _written = write!(labels, ",{name}=\"{}\"", escaped(value));
    }
    labels
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use signalbox_domain::queue::{PrState, measure};

    use super::*;

    #[test]
    fn every_family_is_headed_once_and_every_queue_has_its_series() {
        let counts = [(PrState::Testing, false, 2), (PrState::NotReady, false, 1)];
        let mut queues = measure("acme/calc", "ma\"in", &counts, []).to_vec();
        queues.extend(measure("acme/other", "main", &[], []));
        let text = QueueExposition.render(&queues);
        assert_eq!(text.matches("# TYPE ").count(), 9);
        let depth =
            "mq_depth_current{repo=\"acme/calc\",branch=\"ma\\\"in\",queue_type=\"main\"} 2";
        assert!(text.contains(depth), "{text}");
        assert!(text.contains(
            "mq_awaiting_mergeability{repo=\"acme/calc\",branch=\"ma\\\"in\",queue_type=\"main\"} 1"
        ));
        for conclusion in ["merged", "failed", "cancelled"] {
            assert!(
                text.contains(&format!("queue_type=\"bisection\",conclusion=\"{conclusion}\"}} 0"))
            );
        }
        assert!(text.contains("mq_pr_wait_duration_1h_seconds_bucket{repo=\"acme/other\",branch=\"main\",queue_type=\"main\",le=\"+Inf\"} 0"));
        assert!(text.ends_with('\n'));
    }
}
