//! Failure rate: too large a share of the runs within a window failed.

use std::fmt;

use crate::flaky::monitor::{
    Evidence, MAX_HOURS, MonitorReading, MonitorRule, PASSES_BETWEEN, Parameter, Period, Runs,
    Verdict,
};
use crate::time::{Span, Timestamp};

/// The parameters of a failure-rate monitor.
///
/// Between the two thresholds, and with fewer runs than the sample, nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureRate {
    /// The share of failing runs from which it is active, in percent, 1 to 100.
    pub activation_percent: u32,
    /// The share below which it resolves, in percent, 1 to the activation's.
    pub resolution_percent: u32,
    /// The window in hours, 1 to [`MAX_HOURS`].
    pub window_hours: u32,
    /// The fewest runs on which it decides, 1 to 100,000.
    pub min_sample: u32,
    /// The fewest separate times at which it failed, with at least [`PASSES_BETWEEN`] passing runs in
    /// between, in buckets without a failure; 1 to 24. A test that was broken until it was fixed failed
    /// at one time.
    pub min_failing_times: u32,
}

/// What a failure-rate monitor sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureRateReading {
    /// Runs within the window.
    pub runs: u32,
    /// Failing runs within the window.
    pub failures: u32,
    /// Separate times at which it failed.
    pub failing_times: u32,
    /// The last run.
    pub last_run_at: Option<Timestamp>,
}

impl FailureRate {
    /// The window.
    pub fn window(self) -> Span {
        Span::hours(self.window_hours)
    }
}

impl MonitorRule for FailureRate {
    type Reading = FailureRateReading;

    const PARAMETERS: &'static [Parameter<Self>] = &[
        Parameter::new(
            "activationThreshold",
            "the share of failing runs from which it is active, in percent",
            (1, 100),
            |it| &mut it.activation_percent,
        ),
        Parameter::new(
            "resolutionThreshold",
            "the share of failing runs below which it resolves, in percent; default for a new \
             monitor: its `activationThreshold`",
            (1, 100),
            |it: &mut Self| &mut it.resolution_percent,
        )
        .at_most(|it| it.activation_percent)
        .following(|it| it.activation_percent),
        Parameter::new("windowHours", "the window in hours", (1, MAX_HOURS), |it| {
            &mut it.window_hours
        }),
        Parameter::new(
            "minimumSampleSize",
            "the fewest runs on which it decides",
            (1, 100_000),
            |it| &mut it.min_sample,
        ),
        Parameter::new(
            "minimumFailingTimes",
            "the fewest separate times at which it failed, with 3 passing runs in between; a 48th of the \
             window is one time",
            (1, 24),
            |it| &mut it.min_failing_times,
        ),
    ];

    const START: Self = Self {
        activation_percent: 0,
        resolution_percent: 0,
        window_hours: 24,
        min_sample: 20,
        min_failing_times: 1,
    };

    fn windows(self) -> Vec<Span> {
        vec![self.window()]
    }

    fn read(self, runs: &Runs<'_>) -> FailureRateReading {
        let tally = runs.tally(self.window());
        FailureRateReading {
            runs: tally.runs,
            failures: tally.failures,
            failing_times: failing_times(&runs.periods(self.window())),
            last_run_at: tally.last_run_at,
        }
    }

    fn judge(
        self,
        active: bool,
        _evidence: Option<&FailureRateReading>,
        reading: &FailureRateReading,
        _at: Timestamp,
    ) -> Verdict {
        let share = u64::from(reading.failures) * 100;
        let of_runs = |percent: u32| u64::from(percent) * u64::from(reading.runs);
        if reading.runs < self.min_sample.max(1) {
            Verdict::Keep
        } else if !active
            && share >= of_runs(self.activation_percent)
            && reading.failing_times >= self.min_failing_times
        {
            Verdict::Activate
        } else if active && share < of_runs(self.resolution_percent) {
            Verdict::Resolve
        } else {
            Verdict::Keep
        }
    }
}

/// How often a test began to fail: failures count once as long as fewer than [`PASSES_BETWEEN`] passing
/// runs lie between them, in buckets without a failure.
fn failing_times(periods: &[Period]) -> u32 {
    let mut times = 0_u32;
    let mut passed_since = PASSES_BETWEEN;
    for period in periods {
        if period.failed == 0 {
            passed_since = passed_since.saturating_add(period.passed);
        } else {
            times = times.saturating_add(u32::from(passed_since >= PASSES_BETWEEN));
            passed_since = 0;
        }
    }
    times
}

impl MonitorReading for FailureRateReading {
    fn last_run_at(&self) -> Option<Timestamp> {
        self.last_run_at
    }

    fn evidence(&self) -> Vec<(&'static str, Evidence)> {
        vec![
            ("runs", Evidence::Count(self.runs)),
            ("failures", Evidence::Count(self.failures)),
            ("failing_times", Evidence::Count(self.failing_times)),
        ]
    }
}

impl fmt::Display for FailureRateReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} runs failed", self.failures, self.runs)?;
        match self.failing_times {
            0 | 1 => Ok(()),
            times => write!(f, ", at {times} separate times"),
        }
    }
}
