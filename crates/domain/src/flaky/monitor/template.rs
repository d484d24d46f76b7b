//! Monitors that are offered ready-made. A repository starts with those for stable branches.

use uuid::Uuid;

use crate::ids::RepoId;
use crate::words::words;

use super::super::{BranchClass, BranchScope};
use super::kinds::{FailureCount, FailureRate, FailureStreak};
use super::{Action, Classification, Monitor, MonitorId, Rule};

words!(
    /// A ready-made monitor.
    Template {
        /// The last 5 runs on stable branches failed.
        BrokenOnStable = "broken_on_stable",
        /// At least 2 % of at least 20 runs on stable branches failed within 7 days, at 4 separate times.
        FlakyOnStable = "flaky_on_stable",
        /// Two failures on merge-queue branches within 24 hours.
        FlakyInQueue = "flaky_in_queue",
    }
);

/// The monitors that can be created ready-made, with their words: pass-on-retry and the templates.
pub fn offered() -> Vec<(&'static str, Monitor)> {
    let pass_on_retry = Monitor::pass_on_retry_of(RepoId(Uuid::nil()));
    let word = pass_on_retry.rule.kind().as_str();
    let templates =
        Template::ALL.iter().map(|it| (it.as_str(), it.monitor(MonitorId(Uuid::nil()))));
    std::iter::once((word, pass_on_retry)).chain(templates).collect()
}

impl Template {
    /// The monitor, under a new id.
    pub fn monitor(self, id: MonitorId) -> Monitor {
        let (name, class, classification, rule) = match self {
            Self::BrokenOnStable => (
                "Broken on stable branches",
                BranchClass::Stable,
                Classification::Broken,
                Rule::FailureStreak(FailureStreak { streak: 5, window_hours: 7 * 24 }),
            ),
            Self::FlakyOnStable => (
                "Flaky on stable branches",
                BranchClass::Stable,
                Classification::Flaky,
                Rule::FailureRate(FailureRate {
                    activation_percent: 2,
                    resolution_percent: 1,
                    window_hours: 7 * 24,
                    min_sample: 20,
                    min_failing_times: 4,
                }),
            ),
            Self::FlakyInQueue => (
                "Flaky in the merge queue",
                BranchClass::Merge,
                Classification::Flaky,
                Rule::FailureCount(FailureCount {
                    count: 2,
                    window_hours: 24,
                    resolution_timeout_hours: 7 * 24,
                }),
            ),
        };
        Monitor {
            id,
            name: name.into(),
            enabled: true,
            scope: BranchScope::class(class),
            scope_since: None,
            action: Action::Classify(classification),
            rule,
            stale_timeout_hours: None,
        }
    }
}
