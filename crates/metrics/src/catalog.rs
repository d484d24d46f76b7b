//! The catalog of metrics, read from the metrics themselves.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use signalbox_domain::ids::{OrgId, QueueId, RunId};
use signalbox_domain::ports::{Backlog, Exposition, Observed, Observer, QueueRef};
use signalbox_domain::queue::{Decision, Retry, RetryClass, measure};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use crate::{PrometheusObserver, QueueExposition, Sample};

/// A family of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricRow {
    /// The name that queries use; a histogram adds `_bucket`, `_sum` and `_count`.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: String,
    /// Its labels, without `le` of histograms.
    pub labels: Vec<String>,
    /// Its help text.
    pub help: String,
}

impl MetricRow {
    /// All names of its samples.
    pub fn samples(&self) -> Vec<String> {
        if self.kind == "histogram" {
            return ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", self.name)).into();
        }
        vec![self.name.clone()]
    }
}

/// The families of the server's own page.
pub fn server_metrics() -> Vec<MetricRow> {
    let observer = PrometheusObserver::new("1", Timestamp::from_unix_seconds(1));
    let zero = Uuid::nil();
    let queue = QueueRef { org: OrgId(zero), id: QueueId(zero) };
    let (took, outcome, host) = (Span::seconds(1), "done", "h");
    let class = RetryClass::Infrastructure;
    let retry = Retry {
        class,
        classes: vec![class],
        evidence: Vec::new(),
        failed: Vec::new(),
        at: Timestamp::from_unix_seconds(1),
    };
    let retried = Decision::Retried { run: RunId(zero), prs: Vec::new(), retry };
    let audited = Decision::LandingsAudited { proved: 1, not_checked: 0, wrong: 0 };
    let resized = Decision::WindowResized { from: 4, to: 2, run: RunId(zero) };
    let resets_at = Timestamp::from_unix_seconds(1);
    for seen in [
        Observed::Step { queue, input: "submit", decisions: &[retried, audited, resized], took },
        Observed::EffectRun { queue, effect: "land", outcome, took },
        Observed::Request { operation: "getQueue", status: 200, took },
        Observed::RequestShed { share: "write" },
        Observed::TokenRefused {
            reason: "unknown",
            detail: None,
            from: Ipv4Addr::LOCALHOST.into(),
            count: 1,
        },
        Observed::Panicked { what: "request" },
        Observed::HostCall { host, call: "land", outcome, took },
        Observed::HostQuota { host, resource: "core", limit: 1, remaining: 1, resets_at },
        Observed::Upload { outcome, took },
        Observed::WebhookDelivery { outcome, took },
    ] {
        observer.observe(&seen);
    }
    let backlogs = vec![("host", Some(Backlog::default()))];
    let in_flight = vec![("write", 1)];
    rows(&observer.encode(&Sample { backlogs, in_flight, ..Sample::default() }))
}

/// The families of the page in the API.
pub fn queue_metrics() -> Vec<MetricRow> {
    rows(&QueueExposition.render(&measure("acme/calc", "main", &[], &[])))
}

/// Reads a page in either text format.
fn rows(page: &str) -> Vec<MetricRow> {
    let after = |start: &str, name: &str| {
        let start = format!("# {start} {name} ");
        page.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default().to_owned()
    };
    let families = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let families = families.filter_map(|line| line.split_once(' '));
    families
        .map(|(family, kind)| {
            let name = match kind {
                "counter" => format!("{family}_total"),
                "info" => format!("{family}_info"),
                _ => family.to_owned(),
            };
            let help = after("HELP", family).trim_end_matches('.').to_owned();
            MetricRow { labels: labels(page, family), name, kind: kind.to_owned(), help }
        })
        .collect()
}

/// The labels of a family's samples. Values here have neither quotes nor commas in them.
fn labels(page: &str, family: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, rest)) = line.split_once('{') else { continue };
        let ends = ["", "_total", "_info", "_bucket", "_sum", "_count"];
        if !ends.iter().any(|end| name.strip_suffix(end) == Some(family)) {
            continue;
        }
        let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
        found.extend(
            inside.split(',').filter_map(|pair| pair.split_once('=')).map(|it| it.0.to_owned()),
        );
    }
    found.remove("le");
    found.into_iter().collect()
}

/// The metrics page of the documentation.
pub fn document() -> String {
    let table = |rows: &[MetricRow]| {
        let line = |row: &MetricRow| {
            let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
            let (name, kind, help) = (&row.name, &row.kind, &row.help);
            format!("| `{name}` | {kind} | {} | {help}. |\n", labels.join(", "))
        };
        let rows: String = rows.iter().map(line).collect();
        format!("| name | type | labels | meaning |\n|---|---|---|---|\n{rows}")
    };
    let head = include_str!("metrics_head.md");
    let (server, queues) = (table(&server_metrics()), table(&queue_metrics()));
    let middle = include_str!("metrics_middle.md");
    format!("{head}\n{server}\n{middle}\n{queues}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for row in server_metrics() {
            let ours = row.name.starts_with("signalbox_") || row.name.starts_with("process_");
            assert!(ours, "{row:?}");
            assert!(!row.help.is_empty(), "{row:?}");
            assert_eq!(row.name.ends_with("_total"), row.kind == "counter", "{row:?}");
            let unit = row.name.contains("duration") || row.name.contains("age");
            assert!(!unit || row.name.ends_with("_seconds"), "{row:?}");
            if row.name.contains("duration") {
                assert_eq!(row.kind, "histogram", "{row:?}");
            }
        }
        assert_eq!(queue_metrics().len(), 9);
    }

    #[test]
    fn labels_are_read_from_samples() {
        let rows = server_metrics();
        let labels = |name: &str| {
            let row = rows.iter().find(|row| row.name == name);
            row.map(|row| row.labels.join(" ")).unwrap_or_default()
        };
        assert_eq!(labels("signalbox_requests_total"), "operation status");
        assert_eq!(labels("signalbox_request_duration_seconds"), "operation");
        assert_eq!(labels("signalbox_host_calls_total"), "call host outcome");
        assert_eq!(labels("signalbox_backlog"), "work");
        assert_eq!(labels("signalbox_build_info"), "version");
    }
}
