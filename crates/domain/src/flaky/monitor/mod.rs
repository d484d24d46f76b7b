//! Monitors: each watches every test of a repository for one pattern, and is active or resolved for
//! each of them.
//!
//! A monitor works in two steps, both pure. [`Monitor::read`] turns what is known of a test's runs
//! into a small [`Reading`]. [`Monitor::judge`] turns a reading into a [`Verdict`]. The reading is
//! what a fact carries, what the journal keeps and what an event shows as evidence.

mod failure_count;
mod failure_rate;
mod kind;
mod pass_on_retry;
mod summary;
mod template;

use uuid::Uuid;

use crate::ids::RepoId;
use crate::time::{Span, Timestamp};

use super::{BranchScope, Refusal};

pub use failure_count::{FailureCount, FailureCountReading};
pub use failure_rate::{FailureRate, FailureRateReading};
pub use kind::{Classification, MonitorId, MonitorKind, MonitorStatus};
pub use pass_on_retry::{Disagreement, PassOnRetry, PassOnRetryReading};
pub use summary::{BUCKET_MINUTES, Bucket, CodeSummary, Run, SameCode, Summary};
pub use template::Template;

/// The longest window or timeout, in hours: 45 days, as long as history is kept by default.
pub const MAX_HOURS: u32 = 45 * 24;

/// How long an active monitor may go without being measured, in minutes, so that it resolves when
/// time alone has made it so.
pub const MEASURE_EVERY_MINUTES: u32 = 20;

/// What an active monitor does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Action {
    /// It changes the status of the test.
    Classify(Classification),
    /// It only puts labels on the test: a dry run, or a sign for people.
    Label {
        /// 1 to 10 names of 1 to 100 characters.
        labels: Vec<String>,
        /// Whether it takes them off when it resolves.
        remove_when_resolved: bool,
    },
}

/// What a monitor looks for, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Rule {
    /// See [`PassOnRetry`].
    PassOnRetry(PassOnRetry),
    /// See [`FailureRate`].
    FailureRate(FailureRate),
    /// See [`FailureCount`].
    FailureCount(FailureCount),
}

impl Rule {
    /// The kind.
    pub const fn kind(self) -> MonitorKind {
        match self {
            Self::PassOnRetry(_) => MonitorKind::PassOnRetry,
            Self::FailureRate(_) => MonitorKind::FailureRate,
            Self::FailureCount(_) => MonitorKind::FailureCount,
        }
    }
}

/// A monitor of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Monitor {
    /// Its id.
    pub id: MonitorId,
    /// What people call it, 1 to 100 characters.
    pub name: String,
    /// Whether it works. A disabled monitor is resolved for every test at once.
    pub enabled: bool,
    /// Which runs it looks at.
    pub scope: BranchScope,
    /// When the scope was last changed. Pass-on-retry judges only later events by it.
    pub scope_since: Option<Timestamp>,
    /// What it does while active.
    pub action: Action,
    /// What it looks for.
    pub rule: Rule,
    /// Hours without a run after which it resolves, 1 to [`MAX_HOURS`]. `None`: a test that does not
    /// run stays as it is.
    pub stale_timeout_hours: Option<u32>,
}

/// What a monitor sees of one test at one time. It is the evidence of what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reading {
    /// Of a pass-on-retry monitor.
    PassOnRetry(PassOnRetryReading),
    /// Of a failure-rate monitor.
    FailureRate(FailureRateReading),
    /// Of a failure-count monitor.
    FailureCount(FailureCountReading),
}

impl Reading {
    /// The last run that the monitor knows of.
    pub const fn last_run_at(&self) -> Option<Timestamp> {
        match self {
            Self::PassOnRetry(reading) => reading.last_run_at,
            Self::FailureRate(reading) => reading.last_run_at,
            Self::FailureCount(reading) => reading.last_run_at,
        }
    }
}

/// What a monitor has said of a test so far, as far as the next verdict depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// Whether it is active.
    pub status: MonitorStatus,
    /// Since when.
    pub since: Timestamp,
    /// The reading by which it last became active or was renewed.
    pub evidence: Option<&'a Reading>,
}

/// What follows from a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing changes.
    Keep,
    /// The pattern has appeared.
    Activate,
    /// It is active, and the pattern has appeared again.
    Renew,
    /// Runs have shown that the pattern is gone.
    Resolve,
    /// There was no run for the stale timeout.
    Expire,
}

impl Monitor {
    /// The monitor that every repository starts with: pass-on-retry, 7 days, all branches.
    pub fn pass_on_retry_of(repo: RepoId) -> Self {
        let kind = MonitorKind::PassOnRetry;
        Self {
            id: MonitorId(Uuid::new_v5(&repo.0, kind.word().as_bytes())),
            name: "Pass on retry".into(),
            enabled: true,
            scope: BranchScope::all(),
            scope_since: None,
            action: Action::Classify(Classification::Flaky),
            rule: Rule::PassOnRetry(PassOnRetry::default()),
            stale_timeout_hours: None,
        }
    }

    /// Checks every bound; the refusal names the parameter and its rule.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.name.is_empty() || self.name.chars().count() > 100 {
            return Err(Refusal::setting("name", "must have 1 to 100 characters"));
        }
        self.scope.check("branchScope")?;
        if let Some(hours) = self.stale_timeout_hours {
            bound("staleTimeoutHours", hours, 1, MAX_HOURS)?;
        }
        match self.rule {
            Rule::PassOnRetry(rule) => rule.check()?,
            Rule::FailureRate(rule) => rule.check()?,
            Rule::FailureCount(rule) => rule.check()?,
        }
        match (&self.action, self.rule.kind()) {
            (Action::Classify(Classification::Broken), MonitorKind::PassOnRetry) => {
                Err(Refusal::setting("classification", "of pass_on_retry must be flaky"))
            }
            (Action::Classify(_), _) => Ok(()),
            (Action::Label { labels, .. }, _) => check_labels(labels),
        }
    }

    /// What the monitor sees at a time in what is known then.
    pub fn read(&self, summary: &Summary, at: Timestamp) -> Reading {
        match self.rule {
            Rule::PassOnRetry(rule) => {
                Reading::PassOnRetry(rule.read(&self.scope, self.scope_since, summary, at))
            }
            Rule::FailureRate(rule) => Reading::FailureRate(rule.read(&self.scope, summary, at)),
            Rule::FailureCount(rule) => Reading::FailureCount(rule.read(&self.scope, summary, at)),
        }
    }

    /// For previews: the evidence by which the monitor would become active for a test that it has
    /// never judged, or `None` if it would not.
    pub fn preview(&self, summary: &Summary, at: Timestamp) -> Option<Reading> {
        let reading = self.read(summary, at);
        let before = Before { status: MonitorStatus::Resolved, since: at, evidence: None };
        (self.judge(before, &reading, at) == Some(Verdict::Activate)).then_some(reading)
    }

    /// What follows from a reading that was taken at a time. `None`: it is of another kind.
    pub fn judge(&self, before: Before<'_>, reading: &Reading, at: Timestamp) -> Option<Verdict> {
        let active = before.status == MonitorStatus::Active;
        let verdict = match (self.rule, reading) {
            (Rule::PassOnRetry(rule), Reading::PassOnRetry(reading)) => {
                let last = match before.evidence {
                    Some(Reading::PassOnRetry(evidence)) => evidence.last.as_ref(),
                    Some(Reading::FailureRate(_) | Reading::FailureCount(_)) | None => None,
                };
                rule.judge(active, last, reading, at)
            }
            (Rule::FailureRate(rule), Reading::FailureRate(reading)) => {
                rule.judge(active, *reading)
            }
            (Rule::FailureCount(rule), Reading::FailureCount(reading)) => {
                rule.judge(active, *reading, at)
            }
            (Rule::PassOnRetry(_) | Rule::FailureRate(_) | Rule::FailureCount(_), _) => {
                return None;
            }
        };
        let stale = active && verdict == Verdict::Keep && self.is_stale(before, reading, at);
        Some(if stale { Verdict::Expire } else { verdict })
    }

    fn is_stale(&self, before: Before<'_>, reading: &Reading, at: Timestamp) -> bool {
        let last = reading.last_run_at().map_or(before.since, |last| last.max(before.since));
        self.stale_timeout_hours.is_some_and(|hours| last.plus(Span::hours(hours)) <= at)
    }
}

fn check_labels(labels: &[String]) -> Result<(), Refusal> {
    if labels.is_empty() || labels.len() > 10 {
        return Err(Refusal::setting("labels", "must have 1 to 10 items"));
    }
    if labels.iter().any(|label| label.is_empty() || label.chars().count() > 100) {
        return Err(Refusal::setting("labels", "must have names of 1 to 100 characters"));
    }
    Ok(())
}

/// Checks that a number lies between two others, both allowed.
pub(super) fn bound(field: &str, value: u32, low: u32, high: u32) -> Result<(), Refusal> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Refusal::setting(field, format!("must be a whole number from {low} to {high}")))
}
