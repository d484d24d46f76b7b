//! The nine queue families in the text format 0.0.4.
//!
//! Not written with the client library: that supports only OpenMetrics, which names counters
//! differently, ends with a marker that this format does not have, and does not allow gauges whose
//! names end with `_total`, as these do.

use signalbox_domain::ports::Exposition;
use signalbox_domain::queue::QueueMetrics;

use crate::page::Page;

/// Writes queue metrics as text.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueExposition;

impl Exposition for QueueExposition {
    fn render(&self, queues: &[QueueMetrics]) -> String {
        let mut page = Page::of(queues);
        page.gauge("mq_depth_current", "Pull requests in the line.", |queue| [("", queue.depth)]);
        page.gauge(
            "mq_awaiting_mergeability",
            "Submitted pull requests that are not ready to enter the line.",
            |queue| [("", queue.awaiting_mergeability)],
        );
        page.gauge("mq_testing_slots_active", "Pull requests in testing.", |queue| {
            [("", queue.testing_slots_active)]
        });
        page.label = "conclusion";
        page.gauge(
            "mq_pr_conclusions_1h_total",
            "Pull requests that left the queue in the last hour, by outcome.",
            |queue| queue.conclusions,
        );
        page.gauge(
            "mq_pr_restarts_1h_total",
            "Returns from testing to waiting in the last hour.",
            |queue| [("", queue.restarts)],
        );
        page.histogram(
            "mq_pr_wait_duration_1h_seconds",
            "Time from entering the line to the start of testing, over the last hour.",
            |queue| std::iter::once(("", &queue.wait)),
        );
        page.histogram(
            "mq_pr_test_duration_1h_seconds",
            "Time in testing, over the last hour.",
            |queue| std::iter::once(("", &queue.test)),
        );
        page.histogram(
            "mq_pr_time_in_queue_1h_seconds",
            "Time from entering the line to leaving the queue, over the last hour.",
            |queue| queue.time_in_queue.iter().map(|(value, histogram)| (*value, histogram)),
        );
        page.label = "state";
        page.histogram(
            "mq_pr_state_duration_1h_seconds",
            "Time spent in each state, for states left in the last hour.",
            |queue| queue.state_duration.iter().map(|(value, histogram)| (*value, histogram)),
        );
        page.text
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::queue::{PrState, Stay, measure};
    use signalbox_domain::time::Timestamp;

    use super::*;

    const FAMILIES: [(&str, &str); 9] = [
        ("mq_depth_current", "gauge"),
        ("mq_awaiting_mergeability", "gauge"),
        ("mq_testing_slots_active", "gauge"),
        ("mq_pr_conclusions_1h_total", "gauge"),
        ("mq_pr_restarts_1h_total", "gauge"),
        ("mq_pr_wait_duration_1h_seconds", "histogram"),
        ("mq_pr_test_duration_1h_seconds", "histogram"),
        ("mq_pr_time_in_queue_1h_seconds", "histogram"),
        ("mq_pr_state_duration_1h_seconds", "histogram"),
    ];

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn stay(seconds: i64, state: PrState, next: PrState, micros: i64) -> Stay {
        let (at, entered_line_at) = (at(seconds), Some(at(0)));
        let (restarted, bisection) = (false, false);
        Stay { at, state, next, restarted, bisection, micros, entered_line_at }
    }

    /// One queue with a pull request that waited 30.5 s, was tested for 400 s and merged.
    fn page() -> String {
        let stays = [
            stay(31, PrState::Pending, PrState::Testing, 30_500_000),
            stay(431, PrState::Testing, PrState::TestsPassed, 400_000_000),
            stay(440, PrState::TestsPassed, PrState::Merged, 9_000_000),
        ];
        let counts = [(PrState::Pending, false, 2), (PrState::NotReady, false, 1)];
        QueueExposition.render(&measure("acme/calc", "main", &counts, &stays))
    }

    fn lines<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
        page.lines().filter(|line| line.starts_with(start)).collect()
    }

    #[test]
    fn every_family_is_headed_once_also_without_any_queue() {
        for page in [page(), QueueExposition.render(&[])] {
            for (name, kind) in FAMILIES {
                assert_eq!(
                    lines(&page, &format!("# TYPE {name} ")),
                    [format!("# TYPE {name} {kind}")]
                );
                assert_eq!(lines(&page, &format!("# HELP {name} ")).len(), 1);
            }
            assert_eq!(lines(&page, "# TYPE").len(), FAMILIES.len());
        }
    }

    #[test]
    fn gauges_are_whole_numbers_with_the_labels_in_their_order() {
        let page = page();
        assert_eq!(
            lines(&page, "mq_depth_current{"),
            [
                r#"mq_depth_current{repo="acme/calc",branch="main",queue_type="main"} 2"#,
                r#"mq_depth_current{repo="acme/calc",branch="main",queue_type="bisection"} 0"#,
            ]
        );
        let of_main =
            r#"mq_pr_conclusions_1h_total{repo="acme/calc",branch="main",queue_type="main","#;
        assert_eq!(
            lines(&page, of_main),
            [
                format!(r#"{of_main}conclusion="merged"}} 1"#),
                format!(r#"{of_main}conclusion="failed"}} 0"#),
                format!(r#"{of_main}conclusion="cancelled"}} 0"#),
            ]
        );
    }

    #[test]
    fn a_histogram_has_cumulative_buckets_a_sum_in_seconds_and_a_count() {
        let page = page();
        let labels = r#"repo="acme/calc",branch="main",queue_type="main""#;
        let of = |name: &str| lines(&page, &format!("{name}{{{labels}")).join("\n");
        let name = "mq_pr_test_duration_1h_seconds";
        let buckets = [
            ("60", 0),
            ("300", 0),
            ("600", 1),
            ("900", 1),
            ("1800", 1),
            ("3600", 1),
            ("5400", 1),
            ("7200", 1),
            ("+Inf", 1),
        ]
        .map(|(le, count)| format!("{name}_bucket{{{labels},le=\"{le}\"}} {count}"));
        assert_eq!(of(&format!("{name}_bucket")), buckets.join("\n"));
        assert_eq!(of(&format!("{name}_sum")), format!("{name}_sum{{{labels}}} 400"));
        assert_eq!(of(&format!("{name}_count")), format!("{name}_count{{{labels}}} 1"));
        let waited = "mq_pr_wait_duration_1h_seconds_sum";
        assert_eq!(of(waited), format!("{waited}{{{labels}}} 30.5"));
        let queued =
            format!("mq_pr_time_in_queue_1h_seconds_sum{{{labels},conclusion=\"merged\"}}");
        assert_eq!(lines(&page, &queued), [format!("{queued} 440")]);
    }

    #[test]
    fn a_histogram_without_observations_has_only_the_last_bucket() {
        let page = page();
        let labels = r#"repo="acme/calc",branch="main",queue_type="bisection""#;
        let name = "mq_pr_test_duration_1h_seconds";
        let start = |part: &str| format!("{name}_{part}{{{labels}");
        let buckets = [format!("{},le=\"+Inf\"}} 0", start("bucket"))];
        assert_eq!(lines(&page, &start("bucket")), buckets);
        assert_eq!(lines(&page, &start("sum")), [format!("{}}} 0", start("sum"))]);
        assert_eq!(lines(&page, &start("count")), [format!("{}}} 0", start("count"))]);
    }

    #[test]
    fn a_repository_that_two_hosts_have_is_named_with_its_host() {
        let mut queues = measure("acme/calc", "main", &[], &[]).to_vec();
        queues.extend(measure("acme/calc", "main", &[], &[]));
        for (queue, host) in queues.iter_mut().zip(["a.test", "a.test", "b.test", "b.test"]) {
            queue.repo_host = Some(host.to_owned());
        }
        let page = QueueExposition.render(&queues);
        let start = r#"mq_depth_current{repo="acme/calc",branch="main",queue_type="main","#;
        let hosts = ["a.test", "b.test"].map(|it| format!("{start}repo_host=\"{it}\"}} 0"));
        assert_eq!(lines(&page, start), hosts);
        let mut series: Vec<&str> = lines(&page, "mq_")
            .iter()
            .filter_map(|it| it.rsplit_once(' '))
            .map(|it| it.0)
            .collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all);
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let queues = measure("a\"b\\c\nd", "main", &[], []);
        let page = QueueExposition.render(&queues);
        assert!(page.contains(r#"repo="a\"b\\c\nd","#), "{page}");
        assert!(page.lines().all(|line| line.starts_with(['m', '#'])), "{page}");
    }
}
