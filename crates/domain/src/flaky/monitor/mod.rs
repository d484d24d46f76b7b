//! Monitors: each watches every test of a repository for one pattern, and is active or resolved for
//! each of them.
//!
//! A monitor works in two steps, both pure. [`Windows::read`] turns the windows of a test into
//! a small [`Reading`]; [`Monitor::read`] computes the same from all runs. [`Monitor::judge`] turns a
//! reading into a [`Verdict`]. The reading is
//! what a fact carries, what the journal keeps and what an event shows as evidence.
//!
//! A kind of monitor is an implementation of [`MonitorRule`] and a row in `kinds`. The enums over
//! all kinds, [`MonitorKind`], [`Rule`] and [`Reading`], are made from the rows.

mod kind;
pub(super) mod kinds;
mod registry;
mod rule;
mod summary;
mod template;
mod windows;

use uuid::Uuid;

use crate::ids::RepoId;
use crate::time::{Span, Timestamp};

use super::{BranchScope, Refusal};
use kinds::PassOnRetry;
use rule::Known;
pub(super) use rule::bound;
pub(super) use windows::comparable;

pub use kind::{Classification, MonitorId, MonitorStatus};
pub use registry::{MonitorKind, Reading, Rule};
pub use rule::{Evidence, MonitorReading, MonitorRule, Parameter, ParameterSpec, Runs};
pub use summary::{BUCKET_MINUTES, Bucket, CodeSummary, Period, Run, SameCode, Summary};
pub use template::{Template, offered};
pub use windows::{Window, WindowRules, Windows, bucket_length, horizon};

/// The longest window or timeout, in hours: 45 days, as long as history is kept by default.
pub const MAX_HOURS: u32 = 45 * 24;

/// How long an active monitor may go without being measured, in minutes, so that it resolves when
/// time alone has made it so.
pub const MEASURE_EVERY_MINUTES: u32 = 20;

/// The fewest passing runs, in buckets without a failure, between two failures that are separate: a bug
/// of one platform fails in nearly every bucket until it is fixed.
pub const PASSES_BETWEEN: u32 = 3;

/// What an active monitor does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Action {
    /// It changes the status of the test.
    Classify(Classification),
    /// It only adds labels to the test: a dry run, or a hint for users.
    Label {
        /// 1 to 10 names of 1 to 100 characters.
        labels: Vec<String>,
        /// Whether it takes them off when it resolves.
        remove_when_resolved: bool,
    },
}

/// A monitor of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Monitor {
    /// Its id.
    pub id: MonitorId,
    /// Its name, 1 to 100 characters.
    pub name: String,
    /// Whether it is enabled. A disabled monitor is resolved for every test immediately.
    pub enabled: bool,
    /// Which runs it looks at.
    pub scope: BranchScope,
    /// When the scope was last changed. Pass-on-retry judges only later events by it.
    pub scope_since: Option<Timestamp>,
    /// What it does while active.
    pub action: Action,
    /// What it looks for.
    pub rule: Rule,
    /// Hours without a run after which it resolves, 1 to [`MAX_HOURS`]. `None`: a test that does
    /// not run stays as it is.
    pub stale_timeout_hours: Option<u32>,
}

/// The state of a monitor for a test that the next verdict depends on.
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
    /// The monitors that every repository starts with: pass-on-retry, and the templates for stable
    /// branches.
    pub fn defaults_of(repo: RepoId) -> Vec<Self> {
        let templates = [Template::BrokenOnStable, Template::FlakyOnStable].map(|template| {
            let id = Uuid::new_v5(&repo.0, template.as_str().as_bytes());
            template.monitor(MonitorId(id))
        });
        std::iter::once(Self::pass_on_retry_of(repo)).chain(templates).collect()
    }

    /// Pass-on-retry, 7 days, all branches.
    pub fn pass_on_retry_of(repo: RepoId) -> Self {
        let rule = Rule::PassOnRetry(PassOnRetry::default());
        Self {
            id: MonitorId(Uuid::new_v5(&repo.0, rule.kind().as_str().as_bytes())),
            name: "Pass on retry".into(),
            enabled: true,
            scope: BranchScope::all(),
            scope_since: None,
            action: Action::Classify(Classification::Flaky),
            rule,
            stale_timeout_hours: None,
        }
    }

    /// Checks every bound; the refusal names the parameter and its rule.
    pub fn check(&self) -> Result<(), Refusal> {
        check_name(&self.name)?;
        self.scope.check("branchScope")?;
        if let Some(hours) = self.stale_timeout_hours {
            bound("staleTimeoutHours", hours, 1, MAX_HOURS)?;
        }
        self.rule.check()?;
        match &self.action {
            Action::Classify(classification) => self.check_classification(*classification),
            Action::Label { labels, .. } => check_labels(labels),
        }
    }

    fn check_classification(&self, classification: Classification) -> Result<(), Refusal> {
        let kind = self.rule.kind();
        let allowed = kind.classifies();
        if allowed.contains(&classification) {
            return Ok(());
        }
        let words: Vec<&str> = allowed.iter().map(|it| it.as_str()).collect();
        let rule = format!("of {} must be {}", kind.as_str(), words.join(" or "));
        Err(Refusal::setting("classification", rule))
    }

    /// What the monitor sees at a time in what is known then.
    pub fn read(&self, summary: &Summary, at: Timestamp) -> Reading {
        let known = Known::All(summary, &self.scope);
        self.rule.read(&Runs { known, scope_since: self.scope_since, at })
    }

    /// What the monitor sees at a time in its window; `None` while it has counted nothing.
    fn read_window(&self, window: Option<&Window>, at: Timestamp) -> Reading {
        let known = Known::Window(window);
        self.rule.read(&Runs { known, scope_since: self.scope_since, at })
    }

    /// For previews: the evidence by which the monitor would become active for a test that it has
    /// never judged, or `None` if it would not.
    pub fn preview(&self, summary: &Summary, at: Timestamp) -> Option<Reading> {
        let reading = self.read(summary, at);
        (self.judge_first(&reading, at) == Some(Verdict::Activate)).then_some(reading)
    }

    /// What follows from a reading for a test that the monitor has never judged.
    pub(super) fn judge_first(&self, reading: &Reading, at: Timestamp) -> Option<Verdict> {
        let before = Before { status: MonitorStatus::Resolved, since: at, evidence: None };
        self.judge(before, reading, at)
    }

    /// What follows from a reading that was taken at a time. `None`: it is of another kind.
    pub fn judge(&self, before: Before<'_>, reading: &Reading, at: Timestamp) -> Option<Verdict> {
        let active = before.status == MonitorStatus::Active;
        let verdict = self.rule.judge(active, before.evidence, reading, at)?;
        let stale = active && verdict == Verdict::Keep && self.is_stale(before, reading, at);
        Some(if stale { Verdict::Expire } else { verdict })
    }

    /// Until when a reading of a test for which the monitor is not active is a suspicion: it may
    /// become active for it. `None`: there is none, or the monitor does not classify.
    pub(super) fn suspects_until(&self, reading: &Reading, at: Timestamp) -> Option<Timestamp> {
        let classifies = matches!(self.action, Action::Classify(_));
        self.rule.suspects_until(reading, at).filter(|_| classifies)
    }

    fn is_stale(&self, before: Before<'_>, reading: &Reading, at: Timestamp) -> bool {
        let last = reading.last_run_at().map_or(before.since, |last| last.max(before.since));
        self.stale_timeout_hours.is_some_and(|hours| last.plus(Span::hours(hours)) <= at)
    }
}

/// Refuses a name that a monitor cannot have: 1 to 100 characters.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.chars().count() > 100 {
        return Err(Refusal::setting("name", "must have 1 to 100 characters"));
    }
    Ok(())
}

/// Refuses labels that a monitor cannot add: 1 to 10, each of 1 to 100 characters.
pub fn check_labels(labels: &[String]) -> Result<(), Refusal> {
    if labels.is_empty() || labels.len() > 10 {
        return Err(Refusal::setting("labels", "must have 1 to 10 items"));
    }
    if labels.iter().any(|label| label.is_empty() || label.chars().count() > 100) {
        return Err(Refusal::setting("labels", "must have names of 1 to 100 characters"));
    }
    Ok(())
}
