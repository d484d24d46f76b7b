//! A page in the text format 0.0.4: families of samples about queues.

use std::fmt::Write as _;

use itoa::Buffer;
use signalbox_domain::queue::{BUCKETS_SECONDS, Histogram, QueueMetrics};

/// The approximate size of a queue of one type, in bytes.
const BYTES_EACH: usize = 6 * 1024;

/// The text so far, and its parts. Nearly all of it is repeated labels, so they are rendered once
/// for each queue and copied.
pub(crate) struct Page<'a> {
    pub(crate) text: String,
    /// Each queue with its own labels.
    queues: Vec<(&'a QueueMetrics, String)>,
    /// The `le` label of each bucket, after the other labels.
    bounds: [String; BUCKETS_SECONDS.len()],
    /// The name of the label in addition to the queue's labels; a sample may omit it.
    pub(crate) label: &'static str,
}

impl<'a> Page<'a> {
    /// An empty page about these queues.
    pub(crate) fn of(queues: &'a [QueueMetrics]) -> Self {
        Self {
            text: String::with_capacity(queues.len() * BYTES_EACH),
            queues: queues.iter().map(|queue| (queue, labels(queue))).collect(),
            bounds: BUCKETS_SECONDS.map(|bound| format!(",le=\"{bound}\"")),
            label: "",
        }
    }

    /// Samples of every queue, each with the value of the extra label, or an empty one.
    pub(crate) fn gauge<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Fn(&QueueMetrics) -> [(&'static str, u64); N],
    ) {
        self.head(name, help, "gauge");
        for (queue, labels) in &self.queues {
            for (extra, value) in samples(queue) {
                let labels = Labels { queue: labels, extra: (self.label, extra), bound: "" };
                sample(&mut self.text, [name, ""], labels, Buffer::new().format(value));
            }
        }
    }

    /// Histograms of every queue, each with the value of the extra label, or an empty one. Those
    /// without observations, which are most of them, have no bucket but the last one: all others
    /// are 0, so sums and quantiles are the same without them.
    pub(crate) fn histogram<H: Iterator<Item = (&'static str, &'a Histogram)>>(
        &mut self,
        name: &str,
        help: &str,
        histograms: impl Fn(&'a QueueMetrics) -> H,
    ) {
        self.head(name, help, "histogram");
        for (queue, labels) in &self.queues {
            for (extra, histogram) in histograms(queue) {
                let labels = Labels { queue: labels, extra: (self.label, extra), bound: "" };
                let observed = if histogram.count == 0 { &[][..] } else { &self.bounds[..] };
                for (bound, count) in observed.iter().zip(histogram.buckets) {
                    let labels = Labels { bound, ..labels };
                    sample(&mut self.text, [name, "_bucket"], labels, Buffer::new().format(count));
                }
                let (sum, mut count) = (seconds(histogram.sum_micros), Buffer::new());
                let count = count.format(histogram.count);
                let all = Labels { bound: ",le=\"+Inf\"", ..labels };
                sample(&mut self.text, [name, "_bucket"], all, count);
                sample(&mut self.text, [name, "_sum"], labels, &sum);
                sample(&mut self.text, [name, "_count"], labels, count);
            }
        }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

/// The labels of a sample.
#[derive(Clone, Copy)]
struct Labels<'a> {
    /// Those of the queue, as text.
    queue: &'a str,
    /// The name and the value of one more, a word that needs no escape; none if the value is empty.
    extra: (&'a str, &'a str),
    /// The `le` label of a bucket, as text.
    bound: &'a str,
}

/// One line: a name in two parts, labels, a value.
fn sample(text: &mut String, name: [&str; 2], labels: Labels<'_>, value: &str) {
    for part in name {
        text.push_str(part);
    }
    text.push('{');
    text.push_str(labels.queue);
    let (label, word) = labels.extra;
    if !word.is_empty() {
        for part in [",", label, "=\"", word, "\""] {
            text.push_str(part);
        }
    }
    for part in [labels.bound, "} ", value, "\n"] {
        text.push_str(part);
    }
}

fn labels(queue: &QueueMetrics) -> String {
    let host = queue.repo_host.as_deref();
    let host = host.map(|host| format!(",repo_host=\"{}\"", escaped(host)));
    format!(
        "repo=\"{}\",branch=\"{}\",queue_type=\"{}\"{}",
        escaped(&queue.repo),
        escaped(&queue.branch),
        escaped(queue.queue_type),
        host.unwrap_or_default(),
    )
}

/// A label's value, escaped for quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Microseconds as seconds, exactly and without needless zeros.
fn seconds(micros: i64) -> String {
    if micros == 0 {
        return "0".to_owned();
    }
    let (whole, rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let sign = if micros < 0 { "-" } else { "" };
    let exact = format!("{sign}{whole}.{rest:06}");
    exact.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact() {
        for (micros, text) in [
            (0, "0"),
            (1, "0.000001"),
            (1_500_000, "1.5"),
            (10_000_000, "10"),
            (-2_500_000, "-2.5"),
        ] {
            assert_eq!(seconds(micros), text);
        }
    }
}
