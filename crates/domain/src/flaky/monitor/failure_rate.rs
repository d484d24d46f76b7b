//! Failure rate: too large a share of the runs within a window failed.

use crate::time::{Span, Timestamp};

use super::super::{BranchScope, Refusal};
use super::{MAX_HOURS, Summary, Verdict, bound};

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
    /// The fewest runs that say anything, 1 to 100,000.
    pub min_sample: u32,
}

/// What a failure-rate monitor sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureRateReading {
    /// Runs within the window.
    pub runs: u32,
    /// Failing runs within the window.
    pub failures: u32,
    /// The last run.
    pub last_run_at: Option<Timestamp>,
}

impl FailureRate {
    /// The window.
    pub fn window(self) -> Span {
        Span::hours(self.window_hours)
    }

    pub(super) fn check(self) -> Result<(), Refusal> {
        bound("activationThreshold", self.activation_percent, 1, 100)?;
        bound("resolutionThreshold", self.resolution_percent, 1, self.activation_percent)?;
        bound("windowHours", self.window_hours, 1, MAX_HOURS)?;
        bound("minimumSampleSize", self.min_sample, 1, 100_000)
    }

    pub(super) fn read(
        self,
        scope: &BranchScope,
        summary: &Summary,
        at: Timestamp,
    ) -> FailureRateReading {
        let tally = summary.tally(scope, self.window(), at);
        FailureRateReading {
            runs: tally.runs,
            failures: tally.failures,
            last_run_at: tally.last_run_at,
        }
    }

    pub(super) fn judge(self, active: bool, reading: FailureRateReading) -> Verdict {
        let share = u64::from(reading.failures) * 100;
        let of_runs = |percent: u32| u64::from(percent) * u64::from(reading.runs);
        if reading.runs < self.min_sample.max(1) {
            Verdict::Keep
        } else if !active && share >= of_runs(self.activation_percent) {
            Verdict::Activate
        } else if active && share < of_runs(self.resolution_percent) {
            Verdict::Resolve
        } else {
            Verdict::Keep
        }
    }
}
