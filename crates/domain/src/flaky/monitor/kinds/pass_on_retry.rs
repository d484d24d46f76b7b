//! Pass on retry: the test failed and passed on the same code.

use std::fmt;

use crate::flaky::monitor::{
    Classification, Evidence, MonitorReading, MonitorRule, Parameter, Runs, SameCode, Verdict,
};
use crate::time::{Span, Timestamp};

/// The parameters of a pass-on-retry monitor. It classifies as flaky only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PassOnRetry {
    /// Days without a disagreement after which it resolves, 1 to 15.
    pub recovery_days: u32,
}

impl Default for PassOnRetry {
    fn default() -> Self {
        Self::START
    }
}

/// A failure and a success on the same code. However often it is retried, it is one disagreement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Disagreement {
    /// The code.
    pub code: SameCode,
    /// When the second of the two results was there, whichever it was.
    pub at: Timestamp,
}

/// What a pass-on-retry monitor sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PassOnRetryReading {
    /// The last disagreement, if any is known.
    pub last: Option<Disagreement>,
    /// Runs within the recovery time.
    pub runs: u32,
    /// The last run.
    pub last_run_at: Option<Timestamp>,
}

impl PassOnRetry {
    /// The time after which it recovers.
    pub fn recovery(self) -> Span {
        Span::hours(self.recovery_days.saturating_mul(24))
    }
}

impl MonitorRule for PassOnRetry {
    type Reading = PassOnRetryReading;

    const PARAMETERS: &'static [Parameter<Self>] = &[Parameter::new(
        "recoveryDays",
        "days without a disagreement after which it resolves",
        (1, 15),
        |it| &mut it.recovery_days,
    )];

    const START: Self = Self { recovery_days: 7 };

    const CLASSIFIES: &'static [Classification] = &[Classification::Flaky];

    fn windows(self) -> Vec<Span> {
        vec![self.recovery()]
    }

    fn read(self, runs: &Runs<'_>) -> PassOnRetryReading {
        let tally = runs.tally(self.recovery());
        let last = runs.last_disagreement();
        PassOnRetryReading { last, runs: tally.runs, last_run_at: tally.last_run_at }
    }

    /// A test that did not run within the recovery time has not shown that it recovered.
    fn judge(
        self,
        active: bool,
        evidence: Option<&PassOnRetryReading>,
        reading: &PassOnRetryReading,
        at: Timestamp,
    ) -> Verdict {
        let last = reading.last.as_ref().map(|it| it.at);
        let fresh = |when: Timestamp| when.plus(self.recovery()) > at;
        if !active {
            return if last.is_some_and(fresh) { Verdict::Activate } else { Verdict::Keep };
        }
        let known = evidence.and_then(|it| it.last.as_ref()).map(|it| it.at);
        if last > known {
            Verdict::Renew
        } else if !known.is_some_and(fresh) && reading.runs > 0 {
            Verdict::Resolve
        } else {
            Verdict::Keep
        }
    }
}

impl MonitorReading for PassOnRetryReading {
    fn last_run_at(&self) -> Option<Timestamp> {
        self.last_run_at
    }

    fn evidence(&self) -> Vec<(&'static str, Evidence)> {
        vec![
            ("last_disagreement_at", Evidence::Time(self.last.as_ref().map(|it| it.at))),
            ("runs", Evidence::Count(self.runs)),
        ]
    }
}

impl fmt::Display for PassOnRetryReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last.as_ref().map(|it| &it.code) {
            Some(SameCode::Commit(sha)) => write!(f, "failed and passed on commit {sha}"),
            Some(SameCode::Tree(tree)) => write!(f, "failed and passed on tree {tree}"),
            Some(SameCode::Upload(id)) => write!(f, "failed and passed in upload {id}"),
            None => write!(f, "{} runs without disagreement", self.runs),
        }
    }
}
