//! Pass on retry: the test failed and passed on the same code.

use std::fmt;

use crate::flaky::monitor::{
    Classification, Evidence, MonitorReading, MonitorRule, PASSES_BETWEEN, Parameter, Period, Runs,
    SameCode, Verdict,
};
use crate::flaky::origin::Doubt;
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

/// Why a disagreement is in doubt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Uncertainty {
    /// What the two results may differ in.
    pub about: Doubt,
    /// The failure.
    pub failed_at: Timestamp,
    /// The branch of the failure, unless it is stable: two disagreements of one pull request count
    /// as one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub branch: Option<String>,
}

/// A failure and a success on the same code. However often it is retried, it is one disagreement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Disagreement {
    /// The code.
    pub code: SameCode,
    /// When the second of the two results was there, whichever it was.
    pub at: Timestamp,
    /// Why it is in doubt; `None`: both results are of one job and base, or of one upload.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub doubt: Option<Uncertainty>,
}

impl Disagreement {
    /// Whether another one in doubt supports this one: an earlier failure on another commit, and of
    /// another pull request, with passing runs in between.
    fn is_supported_by(&self, other: &Self, periods: &[Period]) -> bool {
        let (Some(here), Some(there)) = (&self.doubt, &other.doubt) else { return false };
        let apart =
            self.code != other.code && (here.branch.is_none() || here.branch != there.branch);
        let between = |it: &&Period| {
            it.failed == 0 && it.start > there.failed_at && it.start < here.failed_at
        };
        let passed = periods.iter().filter(between).map(|it| it.passed);
        apart && passed.fold(0, u32::saturating_add) >= PASSES_BETWEEN
    }
}

/// What a pass-on-retry monitor sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PassOnRetryReading {
    /// The last disagreement that counts, if any is known: one without doubt, or one that another
    /// supports.
    pub last: Option<Disagreement>,
    /// The last one after it that is in doubt and does not count.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub maybe: Option<Disagreement>,
    /// Runs within the recovery time.
    pub runs: u32,
    /// The last run.
    pub last_run_at: Option<Timestamp>,
}

impl PassOnRetryReading {
    /// The last disagreement, in doubt or not.
    fn newest(&self) -> Option<Timestamp> {
        [&self.last, &self.maybe].into_iter().flatten().map(|it| it.at).max()
    }
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

    const COMPARES: bool = true;

    fn windows(self) -> Vec<Span> {
        vec![self.recovery()]
    }

    fn read(self, runs: &Runs<'_>) -> PassOnRetryReading {
        let tally = runs.tally(self.recovery());
        let known = runs.disagreements();
        let since = runs.at.minus(self.recovery());
        let doubtful = || known.iter().filter(|it| it.doubt.is_some() && it.at > since);
        let periods =
            if doubtful().nth(1).is_some() { runs.periods(self.recovery()) } else { Vec::new() };
        let counts = |it: &&Disagreement| {
            it.doubt.is_none()
                || (it.at > since && doubtful().any(|other| it.is_supported_by(other, &periods)))
        };
        let last = known.iter().find(counts).cloned();
        let counted = last.as_ref().map(|it| it.at);
        let maybe = known.iter().find(|it| it.doubt.is_some() && Some(it.at) > counted).cloned();
        PassOnRetryReading { last, maybe, runs: tally.runs, last_run_at: tally.last_run_at }
    }

    /// A test that did not run within the recovery time has not shown that it recovered. One that
    /// was found before is found again by a disagreement in doubt.
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
        let known = evidence.and_then(PassOnRetryReading::newest);
        if reading.newest() > known {
            Verdict::Renew
        } else if !known.is_some_and(fresh) && reading.runs > 0 {
            Verdict::Resolve
        } else {
            Verdict::Keep
        }
    }

    fn suspects_until(self, reading: &PassOnRetryReading, at: Timestamp) -> Option<Timestamp> {
        let until = reading.maybe.as_ref()?.at.plus(self.recovery());
        Some(until).filter(|until| *until > at)
    }
}

impl MonitorReading for PassOnRetryReading {
    fn last_run_at(&self) -> Option<Timestamp> {
        self.last_run_at
    }

    fn evidence(&self) -> Vec<(&'static str, Evidence)> {
        let newest = self.maybe.as_ref().or(self.last.as_ref());
        let maybe = newest.and_then(|it| it.doubt.as_ref()).map(|it| it.about.as_str());
        vec![
            ("last_disagreement_at", Evidence::Time(newest.map(|it| it.at))),
            ("maybe", Evidence::Word(maybe)),
            ("runs", Evidence::Count(self.runs)),
        ]
    }
}

impl fmt::Display for PassOnRetryReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(newest) = self.maybe.as_ref().or(self.last.as_ref()) else {
            return write!(f, "{} runs without disagreement", self.runs);
        };
        match &newest.code {
            SameCode::Commit(sha) => write!(f, "failed and passed on commit {sha}")?,
            SameCode::Tree(tree) => write!(f, "failed and passed on tree {tree}")?,
            SameCode::Upload(id) => write!(f, "failed and passed in upload {id}")?,
        }
        match (&newest.doubt, &self.maybe) {
            (Some(doubt), Some(_)) => write!(f, "; maybe: {}", doubt.about),
            (Some(_), None) => write!(f, ", as on another commit before"),
            (None, _) => Ok(()),
        }
    }
}
