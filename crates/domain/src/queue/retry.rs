//! Retries: a failed check runs again on the same candidate when the evidence says that the failure
//! has nothing to do with the changes under test.

use crate::ids::Sha;
use crate::time::{Span, Timestamp};
use crate::words::words;

use super::{Check, CheckConclusion, Entry, Queue, Settings, TestRun, red};

words!(
    /// Why a failed check may run again.
    RetryClass {
        /// CI failed, and not a test: the check was cancelled, did not start or was lost.
        Infrastructure = "INFRASTRUCTURE",
        /// Every failed test is known to be flaky.
        KnownFlaky = "KNOWN_FLAKY",
        /// Every failed test has recently failed in the same way without these changes.
        SeenElsewhere = "SEEN_ELSEWHERE",
    }
);

impl RetryClass {
    /// How often checks of a pull request may run again for this cause, until it is submitted again.
    pub const fn budget(self, settings: &Settings) -> u32 {
        match self {
            Self::Infrastructure => settings.infrastructure_retries,
            Self::KnownFlaky => settings.known_flaky_retries,
            Self::SeenElsewhere => settings.seen_elsewhere_retries,
        }
    }
}

/// The first line of a check's output that shows that a machine failed: it contains one of
/// [`Settings::infrastructure_messages`]. The author of the changes could print such a line, and would
/// gain no more than the budget of retries.
pub fn machine_failure<'a>(settings: &Settings, output: &'a str) -> Option<&'a str> {
    let messages = settings.infrastructure_messages.iter().map(|message| message.trim());
    // A blank one would be in every line.
    let messages: Vec<&str> = messages.filter(|message| !message.is_empty()).collect();
    output.lines().find(|line| messages.iter().any(|message| line.contains(message)))
}

/// What is known about the cause of a failed check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum FailureCause {
    /// Its test reports are expected, and have not been read yet.
    Awaited {
        /// How long the run waits for them; `None` until the planner has set it.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        until: Option<Timestamp>,
        /// What shows that a machine failed: without reports it may run again as
        /// [`RetryClass::Infrastructure`]. If empty, the failure then counts.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
        otherwise: Vec<String>,
    },
    /// Only quarantined tests failed, in complete reports of a check that only runs tests:
    /// it counts as passed.
    Quarantined {
        /// The failed tests, each with who or what quarantined it: all of them.
        tests: Vec<String>,
    },
    /// It may run again.
    Retry {
        /// The class of the failure.
        class: RetryClass,
        /// The evidence: failed tests, or a sentence; at most [`FailureCause::NAMED`].
        evidence: Vec<String>,
        /// Whether the target is red: its newest results have the same failures.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
        on_target: bool,
    },
    /// A test failed in a way that is new, or no report names a failed test.
    New {
        /// The tests with new failures, if any; at most [`FailureCause::NAMED`].
        tests: Vec<String>,
    },
}

impl FailureCause {
    /// The most tests that a cause names.
    pub const NAMED: usize = 10;

    /// Whether no report says anything about the failure.
    fn names_no_test(&self) -> bool {
        matches!(self, Self::New { tests } if tests.is_empty())
    }
}

/// The cause of a failed check of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CheckCause {
    /// The name of the check.
    pub check: String,
    /// When the failure was reported, which tells it from failures of other attempts.
    pub at: Timestamp,
    /// The cause.
    pub cause: FailureCause,
}

/// A retry of failed checks on the same candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Retry {
    /// The class of the failure; of several, the first in the order of [`RetryClass::ALL`].
    pub class: RetryClass,
    /// All classes of the failures, each of which uses its budget.
    pub classes: Vec<RetryClass>,
    /// The evidence.
    pub evidence: Vec<String>,
    /// The failed checks, as they were reported.
    pub failed: Vec<Check>,
    /// When the planner decided on it.
    pub at: Timestamp,
}

/// A target branch whose own tests fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RedTarget {
    /// Its head then, or after the queue's own landings since.
    pub head: Sha,
    /// The failed tests; at most [`FailureCause::NAMED`].
    pub tests: Vec<String>,
    /// Since when no run starts.
    pub since: Timestamp,
    /// When runs start again even if it has not moved.
    pub until: Timestamp,
    /// When the hold ended. Another one needs another head.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub ended: Option<Timestamp>,
}

/// How often checks of an entry ran again since it was submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Retries {
    /// After failures of CI.
    pub infrastructure: u32,
    /// After failures of tests that are known to be flaky.
    pub known_flaky: u32,
    /// After failures that were seen without its changes.
    pub seen_elsewhere: u32,
}

impl Retries {
    /// The count of a class.
    pub const fn of(self, class: RetryClass) -> u32 {
        match class {
            RetryClass::Infrastructure => self.infrastructure,
            RetryClass::KnownFlaky => self.known_flaky,
            RetryClass::SeenElsewhere => self.seen_elsewhere,
        }
    }

    /// Counts one more retry of a class.
    pub(super) const fn count(&mut self, class: RetryClass) {
        let count = match class {
            RetryClass::Infrastructure => &mut self.infrastructure,
            RetryClass::KnownFlaky => &mut self.known_flaky,
            RetryClass::SeenElsewhere => &mut self.seen_elsewhere,
        };
        *count = count.saturating_add(1);
    }

    /// Whether there was none.
    #[cfg_attr(not(feature = "serde"), expect(dead_code, reason = "used by the stored form"))]
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The verdict on the failed checks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The run fails.
    Fail,
    /// Reports are expected, or other checks are still running.
    Wait,
    /// The failed checks run again.
    Retry(Retry),
    /// The target is red: these tests fail there, too.
    Hold(Vec<String>),
}

impl TestRun {
    /// The required checks that failed, in the order of the required statuses.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        let names = self.required.iter().flat_map(|required| required.names.iter());
        let checks = names.filter_map(|name| self.checks.iter().find(|it| it.name == *name));
        checks.filter(|check| check.conclusion.is_some_and(|it| !it.is_success()))
    }

    /// What is known about the cause of a failed check.
    pub fn cause_of(&self, check: &Check) -> Option<&FailureCause> {
        let is_of = |it: &&CheckCause| it.check == check.name && it.at == check.at;
        self.causes.iter().find(is_of).map(|it| &it.cause)
    }

    /// The failed checks whose test reports it waits for, and for how long.
    pub fn awaited_reports(&self) -> impl Iterator<Item = (&Check, Option<Timestamp>)> {
        self.failures().filter_map(|check| match self.cause_of(check) {
            Some(FailureCause::Awaited { until, .. }) => Some((check, *until)),
            Some(
                FailureCause::Quarantined { .. }
                | FailureCause::Retry { .. }
                | FailureCause::New { .. },
            )
            | None => None,
        })
    }

    /// Until when it waits for test reports; `None` if it waits for none.
    pub fn reports_until(&self) -> Option<Timestamp> {
        self.awaited_reports().filter_map(|(_, until)| until).min()
    }

    /// The last retry, while one of its checks has no result.
    pub fn retrying(&self) -> Option<&Retry> {
        let last = self.retries.last()?;
        let is_open = |failed: &Check| {
            self.checks.iter().any(|it| it.name == failed.name && it.conclusion.is_none())
        };
        last.failed.iter().any(is_open).then_some(last)
    }

    /// Whether a report is one that a retry has made void.
    pub(super) fn is_void(&self, report: &Check) -> bool {
        let is_same = |failed: &Check| {
            (&failed.name, failed.conclusion, failed.at, &failed.url)
                == (&report.name, report.conclusion, report.at, &report.url)
        };
        self.retries.iter().any(|retry| retry.failed.iter().any(is_same))
    }

    /// The class of a failed check with the evidence; `None` if its failure is final.
    fn class_of(&self, check: &Check) -> Option<(RetryClass, Vec<String>)> {
        if self.external().contains(&check.name) {
            // Only the external CI could run it again.
            return None;
        }
        match (self.cause_of(check), check.conclusion) {
            (Some(FailureCause::Retry { class, evidence, .. }), _) => {
                Some((*class, evidence.clone()))
            }
            (cause, Some(CheckConclusion::Cancelled | CheckConclusion::Stale))
                if cause.is_none_or(FailureCause::names_no_test) =>
            {
                Some((RetryClass::Infrastructure, vec![described(check)]))
            }
            (Some(_) | None, _) => None,
        }
    }

    /// Whether a required check may still end: one that has started, and one without a report unless
    /// it is silent and only the host would run it.
    fn has_open_checks(&self) -> bool {
        let names = self.required.iter().flat_map(|required| &required.names);
        names.into_iter().any(|name| match self.checks.iter().find(|it| it.name == *name) {
            Some(check) => check.conclusion.is_none(),
            None => !(self.read && self.silent.contains(name)),
        })
    }

    /// Judges the failed checks of this run, of which there is at least one.
    pub(super) fn judge(&self, queue: &Queue, at: Timestamp) -> Verdict {
        let settings = &queue.header.settings;
        let members = || self.group.iter().filter_map(|member| queue.entry(member.entry));
        let is_left = |class: RetryClass| {
            members().all(|entry: &Entry| entry.retries.of(class) < class.budget(settings))
        };
        let hour_ago = at.minus(Span::hours(1));
        let within_hour = queue.header.retried.iter().filter(|it| **it > hour_ago).count();
        let per_hour = usize::try_from(settings.retries_per_hour).unwrap_or(usize::MAX);
        let may_hold = red::may_hold(queue, members());
        let (mut classes, mut evidence, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut awaits, mut on_target) = (false, Vec::new());
        for check in self.failures() {
            if matches!(self.cause_of(check), Some(FailureCause::Awaited { .. })) {
                awaits = true;
                continue;
            }
            let class = self.class_of(check);
            let retry = class.filter(|(class, _)| is_left(*class) && within_hour < per_hour);
            let Some((class, found)) = retry else {
                let cause = self.cause_of(check).filter(|_| may_hold);
                let Some(FailureCause::Retry { evidence, on_target: true, .. }) = cause else {
                    return Verdict::Fail;
                };
                on_target.extend(evidence.iter().cloned());
                continue;
            };
            classes.push(class);
            evidence.extend(found);
            failed.push(check.clone());
        }
        if awaits || self.has_open_checks() {
            return Verdict::Wait;
        }
        if !on_target.is_empty() {
            on_target.truncate(FailureCause::NAMED);
            return Verdict::Hold(on_target);
        }
        let all = RetryClass::ALL.iter().copied();
        let classes: Vec<RetryClass> = all.filter(|class| classes.contains(class)).collect();
        evidence.truncate(FailureCause::NAMED);
        match classes.first().copied() {
            Some(class) => Verdict::Retry(Retry { class, classes, evidence, failed, at }),
            None => Verdict::Fail,
        }
    }
}

/// A failed check with its summary, or with its conclusion if that says more than "failed".
pub(super) fn described(check: &Check) -> String {
    match (&check.summary, check.conclusion) {
        (Some(summary), _) => format!("{}: {summary}", check.name),
        (None, None | Some(CheckConclusion::Failure)) => check.name.clone(),
        (None, Some(other)) => {
            let word = other.as_str().to_lowercase().replace('_', " ");
            format!("{}: {word}", check.name)
        }
    }
}
