//! Failure count: a number of failures within a window, however many runs there were.

use crate::time::{Span, Timestamp};

use super::super::{BranchScope, Refusal};
use super::{MAX_HOURS, Summary, Verdict, bound};

/// The parameters of a failure-count monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureCount {
    /// The failures that make it active, 1 to 10,000.
    pub count: u32,
    /// The window in hours, 1 to [`MAX_HOURS`].
    pub window_hours: u32,
    /// Hours without a failure after which it resolves, from the window to [`MAX_HOURS`].
    pub resolution_timeout_hours: u32,
}

/// What a failure-count monitor sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureCountReading {
    /// Failing runs within the window.
    pub failures: u32,
    /// Runs within the resolution timeout.
    pub runs: u32,
    /// The last run that failed.
    pub last_failure_at: Option<Timestamp>,
    /// The last run.
    pub last_run_at: Option<Timestamp>,
}

impl FailureCount {
    /// The window.
    pub fn window(self) -> Span {
        Span::hours(self.window_hours)
    }

    /// The time without a failure after which it resolves.
    pub fn resolution_timeout(self) -> Span {
        Span::hours(self.resolution_timeout_hours)
    }

    pub(super) fn check(self) -> Result<(), Refusal> {
        bound("failureCount", self.count, 1, 10_000)?;
        bound("windowHours", self.window_hours, 1, MAX_HOURS)?;
        let timeout = self.resolution_timeout_hours;
        bound("resolutionTimeoutHours", timeout, self.window_hours, MAX_HOURS)
    }

    pub(super) fn read(
        self,
        scope: &BranchScope,
        summary: &Summary,
        at: Timestamp,
    ) -> FailureCountReading {
        let tally = summary.tally(scope, self.window(), at);
        FailureCountReading {
            failures: tally.failures,
            runs: summary.tally(scope, self.resolution_timeout(), at).runs,
            last_failure_at: tally.last_failure_at,
            last_run_at: tally.last_run_at,
        }
    }

    /// Judges a reading. A test that did not run within the timeout has not shown that it passes.
    pub(super) fn judge(
        self,
        active: bool,
        reading: FailureCountReading,
        at: Timestamp,
    ) -> Verdict {
        let timeout = self.resolution_timeout();
        let quiet = reading.last_failure_at.is_none_or(|last| last.plus(timeout) <= at);
        if !active && reading.failures >= self.count.max(1) {
            Verdict::Activate
        } else if active && quiet && reading.runs > 0 {
            Verdict::Resolve
        } else {
            Verdict::Keep
        }
    }
}
