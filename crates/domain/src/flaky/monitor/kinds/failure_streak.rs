//! Failure streak: the test has only failed lately.

use std::fmt;

use crate::flaky::monitor::{
    Evidence, MAX_HOURS, MonitorReading, MonitorRule, Parameter, Runs, Verdict,
};
use crate::time::{Span, Timestamp};

/// The parameters of a failure-streak monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureStreak {
    /// The failing runs since the last passing one that make it active, 2 to 100.
    pub streak: u32,
    /// The window in hours, 1 to [`MAX_HOURS`].
    pub window_hours: u32,
}

/// What a failure-streak monitor sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FailureStreakReading {
    /// Runs within the window.
    pub runs: u32,
    /// Failing runs within the window, in buckets after the last one with a passing run.
    pub streak: u32,
    /// The last run.
    pub last_run_at: Option<Timestamp>,
}

impl FailureStreak {
    /// The window.
    pub fn window(self) -> Span {
        Span::hours(self.window_hours)
    }
}

impl MonitorRule for FailureStreak {
    type Reading = FailureStreakReading;

    const PARAMETERS: &'static [Parameter<Self>] = &[
        Parameter::new(
            "failureStreak",
            "the failing runs since the last passing one that make it active",
            (2, 100),
            |it| &mut it.streak,
        ),
        Parameter::new("windowHours", "the window in hours", (1, MAX_HOURS), |it| {
            &mut it.window_hours
        }),
    ];

    const START: Self = Self { streak: 5, window_hours: 7 * 24 };

    fn windows(self) -> Vec<Span> {
        vec![self.window()]
    }

    fn read(self, runs: &Runs<'_>) -> FailureStreakReading {
        let tally = runs.tally(self.window());
        let periods = runs.periods(self.window());
        let since = periods.iter().rev().take_while(|period| period.passed == 0);
        let streak = since.map(|period| period.failed).fold(0, u32::saturating_add);
        FailureStreakReading { runs: tally.runs, streak, last_run_at: tally.last_run_at }
    }

    /// Only a passing run resolves it: without runs in the window it keeps its state.
    fn judge(
        self,
        active: bool,
        _evidence: Option<&FailureStreakReading>,
        reading: &FailureStreakReading,
        _at: Timestamp,
    ) -> Verdict {
        if !active && reading.streak >= self.streak {
            Verdict::Activate
        } else if active && reading.streak == 0 && reading.runs > 0 {
            Verdict::Resolve
        } else {
            Verdict::Keep
        }
    }
}

impl MonitorReading for FailureStreakReading {
    fn last_run_at(&self) -> Option<Timestamp> {
        self.last_run_at
    }

    fn evidence(&self) -> Vec<(&'static str, Evidence)> {
        vec![("runs", Evidence::Count(self.runs)), ("failures", Evidence::Count(self.streak))]
    }
}

impl fmt::Display for FailureStreakReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.streak {
            0 => write!(f, "{} runs, and the last passed", self.runs),
            streak => write!(f, "the last {streak} runs failed"),
        }
    }
}
