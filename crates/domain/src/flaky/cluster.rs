//! Clusters of failures: messages that are equal once they are masked.

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::time::Timestamp;

use super::mask;

/// The most bytes of a message that are read.
const MAX_MESSAGE: usize = 4 * 1_024;

/// The most lines of a message that tell it apart.
const MAX_LINES: usize = 8;

/// The most characters of a summary.
const MAX_SUMMARY: usize = 300;

/// What equal failures have in common: 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of a failure's message.
    pub fn of(message: &str) -> Self {
        Self::of_masked(&mask(&telling_lines(message)))
    }

    fn of_masked(masked: &str) -> Self {
        let digest = Sha256::digest(masked.as_bytes());
        let digits = |byte: &u8| [byte >> 4, byte & 15].map(|it| char::from_digit(it.into(), 16));
        Self(digest.iter().take(16).flat_map(digits).flatten().collect())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A failing run's message, as it was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The message.
    pub message: &'a str,
    /// When the run failed.
    pub at: Timestamp,
}

/// Failures that are equal once they are masked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureCluster {
    /// What they have in common.
    pub fingerprint: Fingerprint,
    /// The masked message, at most 300 characters.
    pub summary: String,
    /// How many there are, at least 1.
    pub occurrence_count: u32,
    /// The last of them.
    pub last_occurrence: Timestamp,
}

/// Puts equal failures together: the most frequent first, then the most recent.
pub fn cluster_failures<'a>(
    failures: impl IntoIterator<Item = Failure<'a>>,
) -> Vec<FailureCluster> {
    let mut clusters: BTreeMap<Fingerprint, FailureCluster> = BTreeMap::new();
    for failure in failures {
        let masked = mask(&telling_lines(failure.message));
        let fingerprint = Fingerprint::of_masked(&masked);
        let cluster = clusters.entry(fingerprint.clone()).or_insert_with(|| FailureCluster {
            fingerprint,
            summary: summary_of(&masked),
            occurrence_count: 0,
            last_occurrence: failure.at,
        });
        cluster.occurrence_count = cluster.occurrence_count.saturating_add(1);
        cluster.last_occurrence = cluster.last_occurrence.max(failure.at);
    }
    let mut clusters: Vec<FailureCluster> = clusters.into_values().collect();
    clusters.sort_by(|a, b| {
        (b.occurrence_count, b.last_occurrence).cmp(&(a.occurrence_count, a.last_occurrence))
    });
    clusters
}

/// The `limit` most frequent failures.
pub fn most_common_failures<'a>(
    failures: impl IntoIterator<Item = Failure<'a>>,
    limit: usize,
) -> Vec<FailureCluster> {
    let mut clusters = cluster_failures(failures);
    clusters.truncate(limit);
    clusters
}

fn summary_of(masked: &str) -> String {
    if masked.is_empty() {
        return "no message".into();
    }
    masked.chars().take(MAX_SUMMARY).collect()
}

/// The first lines that say what went wrong. Frames of a stack trace say where.
pub(super) fn telling_lines(message: &str) -> String {
    let end = (0..=message.len().min(MAX_MESSAGE)).rev().find(|at| message.is_char_boundary(*at));
    let message = message.get(..end.unwrap_or(0)).unwrap_or("");
    let lines = message.lines().map(str::trim);
    let telling = lines.filter(|line| !line.is_empty() && !is_frame(line));
    telling.take(MAX_LINES).collect::<Vec<_>>().join("\n")
}

/// Whether a line is a frame of a stack trace, or the line that announces one.
pub(super) fn is_frame(line: &str) -> bool {
    let starts = ["at ", "File \"", "Traceback (", "stack backtrace:", "goroutine ", "... "];
    let numbered = line.strip_prefix('#').or_else(|| {
        line.split_once(": ").filter(|(number, _)| !number.is_empty()).map(|(number, _)| number)
    });
    let number = numbered.map(|it| it.split(' ').next().unwrap_or(""));
    starts.iter().any(|start| line.starts_with(start))
        || number.is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str, seconds: i64) -> Failure<'_> {
        Failure { message, at: Timestamp::from_unix_seconds(seconds) }
    }

    #[test]
    fn equal_failures_are_counted_together() {
        let clusters = cluster_failures([
            failure("timeout after 31 ms on 127.0.0.1:4001", 5),
            failure("expected 1, got 2\n  at Calc.add(Calc.java:12)\n  at run(Main.java:3)", 9),
            failure("timeout after 55 ms on 127.0.0.1:4822", 7),
            failure("expected 4, got 9\n  at Calc.sub(Calc.java:99)", 8),
            failure("timeout after 7 ms on 127.0.0.1:9", 6),
            failure("", 1),
        ]);
        let seen: Vec<_> = clusters
            .iter()
            .map(|it| (it.summary.as_str(), it.occurrence_count, it.last_occurrence))
            .collect();
        let at = Timestamp::from_unix_seconds;
        assert_eq!(
            seen,
            [
                ("timeout after <duration> on <num>:<num>", 3, at(7)),
                ("expected <num>, got <num>", 2, at(9)),
                ("no message", 1, at(1)),
            ]
        );
    }

    #[test]
    fn a_fingerprint_is_short_and_stable() {
        let one = Fingerprint::of("lost 3 of 4 rows");
        assert_eq!(one, Fingerprint::of("lost 10 of 12 rows\n"));
        assert_ne!(one, Fingerprint::of("lost 3 of 4 files"));
        assert_eq!(one.as_str().len(), 32);
    }

    #[test]
    fn frames_of_a_stack_trace_do_not_tell_failures_apart() {
        let plain = Fingerprint::of("Error: lost a row");
        for trace in
            ["0: core::panicking::panic\n12: main::run", "#2 abort", "goroutine 1 [running]"]
        {
            assert_eq!(Fingerprint::of(&format!("Error: lost a row\n{trace}")), plain, "{trace}");
        }
        for line in ["Cause: a full disk", ": a full disk", "#main is missing"] {
            assert_ne!(Fingerprint::of(&format!("Error: lost a row\n{line}")), plain, "{line}");
        }
    }

    #[test]
    fn only_the_most_frequent_are_listed() {
        let messages = ["a", "b", "b", "c", "c", "c"];
        let listed = most_common_failures(messages.iter().map(|it| failure(it, 1)), 2);
        let summaries: Vec<_> = listed.iter().map(|it| it.summary.as_str()).collect();
        assert_eq!(summaries, ["c", "b"]);
    }
}
