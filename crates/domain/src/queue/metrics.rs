//! The values of the nine metric families, computed from the journal and the present state.

use crate::time::{Span, Timestamp};

use super::{Decision, PrState, QueuedReason};

/// Upper bounds of the histogram buckets, in seconds; `+Inf` follows.
pub const BUCKETS_SECONDS: [u32; 8] = [60, 300, 600, 900, 1_800, 3_600, 5_400, 7_200];

/// A histogram over [`BUCKETS_SECONDS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Cumulative counts: observations up to and including each bound.
    pub buckets: [u64; BUCKETS_SECONDS.len()],
    /// The number of observations.
    pub count: u64,
    /// The sum of the observations, in microseconds.
    pub sum_micros: i64,
}

impl Histogram {
    /// Adds one observation, in microseconds.
    pub fn observe(&mut self, span_micros: i64) {
        for (bucket, bound) in self.buckets.iter_mut().zip(BUCKETS_SECONDS) {
            if span_micros <= Span::seconds(bound).micros() {
                *bucket += 1;
            }
        }
        self.count += 1;
        self.sum_micros = self.sum_micros.saturating_add(span_micros);
    }
}

/// A stay of an entry in a state that has ended: all that metrics need of a [`Decision::Moved`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// When it ended.
    pub at: Timestamp,
    /// The state.
    pub state: PrState,
    /// The state after it.
    pub next: PrState,
    /// Whether the entry was restarted: it returned to the line.
    pub restarted: bool,
    /// Whether the run that ended the stay belongs to a bisection.
    pub bisection: bool,
    /// How long it was, in microseconds.
    pub micros: i64,
    /// When the entry last entered the line.
    pub entered_line_at: Option<Timestamp>,
}

impl Stay {
    /// The stay that a decision ended; `None` unless it moved an entry from one state to another.
    pub fn of(at: Timestamp, decision: &Decision) -> Option<Self> {
        let Decision::Moved(moved) = decision else { return None };
        Some(Self {
            at,
            state: moved.from?,
            next: moved.to,
            restarted: moved.to == PrState::Pending
                && moved.reason != QueuedReason::NowReady.into(),
            bisection: moved.bisection,
            micros: moved.after_micros,
            entered_line_at: moved.entered_line_at,
        })
    }
}

/// The metrics of one queue, either of its main line or of its bisections.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueueMetrics {
    /// `owner/name`.
    pub repo: String,
    /// The host, if another queue in the same reply has the same repository and branch on another
    /// host.
    pub repo_host: Option<String>,
    /// The target branch.
    pub branch: String,
    /// `main` or `bisection`.
    pub queue_type: &'static str,
    /// Entries in the line.
    pub depth: u64,
    /// Entries that are not ready yet.
    pub awaiting_mergeability: u64,
    /// Entries in TESTING.
    pub testing_slots_active: u64,
    /// Exits in the last hour by conclusion: `merged`, `failed`, `cancelled`.
    pub conclusions: [(&'static str, u64); 3],
    /// Restarts in the last hour.
    pub restarts: u64,
    /// Time from entering the line, or from a restart, to the start of the test.
    pub wait: Histogram,
    /// Time in TESTING.
    pub test: Histogram,
    /// Time from entering the line to the exit, by conclusion.
    pub time_in_queue: [(&'static str, Histogram); 3],
    /// Time spent in each state that was left in the last hour, by state.
    pub state_duration: Vec<(&'static str, Histogram)>,
}

const CONCLUSIONS: [(PrState, &str); 3] =
    [(PrState::Merged, "merged"), (PrState::Failed, "failed"), (PrState::Cancelled, "cancelled")];

const STATES: [(PrState, &str); 5] = [
    (PrState::NotReady, "not_ready"),
    (PrState::Pending, "pending"),
    (PrState::Testing, "testing"),
    (PrState::TestsPassed, "tests_passed"),
    (PrState::PendingFailure, "pending_failure"),
];

/// Measures a queue: its present depth and the stays that ended in the last hour, once for the main
/// line and once for bisections.
pub fn measure<'a>(
    repo: &str,
    branch: &str,
    counts: &[(PrState, bool, u64)],
    stays: impl IntoIterator<Item = &'a Stay>,
) -> [QueueMetrics; 2] {
    let new = |queue_type, bisection: bool| {
        let count = |wanted: &[PrState]| {
            counts
                .iter()
                .filter(|(state, of_bisection, _)| {
                    *of_bisection == bisection && wanted.contains(state)
                })
                .map(|(_, _, count)| count)
                .sum()
        };
        QueueMetrics {
            repo: repo.to_owned(),
            repo_host: None,
            branch: branch.to_owned(),
            queue_type,
            depth: count(&[
                PrState::Pending,
                PrState::Testing,
                PrState::TestsPassed,
                PrState::PendingFailure,
            ]),
            awaiting_mergeability: count(&[PrState::NotReady]),
            testing_slots_active: count(&[PrState::Testing]),
            conclusions: CONCLUSIONS.map(|(_, name)| (name, 0)),
            restarts: 0,
            wait: Histogram::default(),
            test: Histogram::default(),
            time_in_queue: CONCLUSIONS.map(|(_, name)| (name, Histogram::default())),
            state_duration: STATES.iter().map(|(_, name)| (*name, Histogram::default())).collect(),
        }
    };
    let mut main = new("main", false);
    let mut bisection = new("bisection", true);
    for stay in stays {
        let queue = if stay.bisection { &mut bisection } else { &mut main };
        queue.take_in(stay);
    }
    [main, bisection]
}

impl QueueMetrics {
    fn take_in(&mut self, stay: &Stay) {
        for ((_, histogram), (state, _)) in self.state_duration.iter_mut().zip(STATES) {
            if state == stay.state {
                histogram.observe(stay.micros);
            }
        }
        match (stay.state, stay.next) {
            (PrState::Pending, PrState::Testing) => self.wait.observe(stay.micros),
            (PrState::Testing, _) => self.test.observe(stay.micros),
            _ => {}
        }
        self.restarts += u64::from(stay.restarted);
        for (index, (state, _)) in CONCLUSIONS.iter().enumerate() {
            if *state != stay.next {
                continue;
            }
            if let Some((_, count)) = self.conclusions.get_mut(index) {
                *count += 1;
            }
            if let (Some((_, histogram)), Some(entered)) =
                (self.time_in_queue.get_mut(index), stay.entered_line_at)
            {
                histogram.observe(stay.at.since(entered).micros());
            }
        }
    }
}
