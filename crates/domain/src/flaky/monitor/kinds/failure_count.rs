//! Failure count: a number of failures within a window, however many runs there were.

use std::fmt;

use crate::flaky::monitor::{
    Evidence, MAX_HOURS, MonitorReading, MonitorRule, Parameter, Runs, Verdict,
};
use crate::time::{Span, Timestamp};

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
}

impl MonitorRule for FailureCount {
    type Reading = FailureCountReading;

    const PARAMETERS: &'static [Parameter<Self>] = &[
        Parameter::new("failureCount", "the failures that make it active", (1, 10_000), |it| {
            &mut it.count
        }),
        Parameter::new("windowHours", "the window in hours", (1, MAX_HOURS), |it| {
            &mut it.window_hours
        }),
        Parameter::new(
            "resolutionTimeoutHours",
            "hours without a failure after which it resolves",
            (1, MAX_HOURS),
            |it: &mut Self| &mut it.resolution_timeout_hours,
        )
        .at_least(|it| it.window_hours),
    ];

    const START: Self = Self { count: 1, window_hours: 24, resolution_timeout_hours: 7 * 24 };

    fn windows(self) -> Vec<Span> {
        vec![self.window(), self.resolution_timeout()]
    }

    fn read(self, runs: &Runs<'_>) -> FailureCountReading {
        let tally = runs.tally(self.window());
        FailureCountReading {
            failures: tally.failures,
            runs: runs.tally(self.resolution_timeout()).runs,
            last_failure_at: tally.last_failure_at,
            last_run_at: tally.last_run_at,
        }
    }

    /// A test that did not run within the timeout has not shown that it passes.
    fn judge(
        self,
        active: bool,
        _evidence: Option<&FailureCountReading>,
        reading: &FailureCountReading,
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

impl MonitorReading for FailureCountReading {
    fn last_run_at(&self) -> Option<Timestamp> {
        self.last_run_at
    }

    fn evidence(&self) -> Vec<(&'static str, Evidence)> {
        vec![
            ("failures", Evidence::Count(self.failures)),
            ("last_failure_at", Evidence::Time(self.last_failure_at)),
        ]
    }
}

impl fmt::Display for FailureCountReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs failed", self.failures)
    }
}
