//! Test runs: each tests a group of entries on one candidate commit.

use std::sync::Arc;

use crate::ids::{BranchName, EntryId, PrNumber, RunId, Sha, TreeId};
use crate::time::{Span, Timestamp};

use super::{CheckCause, Composition, MergeMethod, Retry, RunCancelReason, TestFailure};
use crate::words::words;

/// A pull request as a member of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member {
    /// Its entry.
    pub entry: EntryId,
    /// Its number.
    pub pr: PrNumber,
    /// The head under test.
    pub head: Sha,
    /// Its title.
    pub title: String,
    /// The URL of its page.
    pub url: String,
}

/// The commit under test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Candidate {
    /// The commit.
    pub sha: Sha,
    /// Its tree, which must be what lands on the target.
    pub tree: TreeId,
}

words!(
    /// The source of the required statuses.
    StatusSource {
        /// The repository's own configuration file.
        RepositoryConfig = "TRUNK_CONFIG",
        /// The host's branch protection.
        BranchProtection = "REPO_PROVIDER_BRANCH_PROTECTION",
        /// The queue's own settings.
        Queue = "MERGE_INSTANCE",
    }
);

/// The statuses that must all succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RequiredStatuses {
    /// Their names.
    pub names: Vec<String>,
    /// Where they come from.
    pub source: StatusSource,
    /// The ones that an external CI runs and reports through the API, in the order of the names.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub external: Vec<String>,
}

words!(
    /// The status of a check.
    CheckStatus {
        /// Waiting for a runner.
        Queued = "QUEUED",
        /// Running.
        InProgress = "IN_PROGRESS",
        /// Ended, with a conclusion.
        Completed = "COMPLETED",
    }
);

words!(
    /// The conclusion of a check.
    CheckConclusion {
        /// It waits for an action of a user.
        ActionRequired = "ACTION_REQUIRED",
        /// It was cancelled.
        Cancelled = "CANCELLED",
        /// It failed.
        Failure = "FAILURE",
        /// Neutral; counts as success.
        Neutral = "NEUTRAL",
        /// It succeeded.
        Success = "SUCCESS",
        /// It was skipped; counts as success.
        Skipped = "SKIPPED",
        /// The host gave up waiting for it.
        Stale = "STALE",
        /// It timed out.
        TimedOut = "TIMED_OUT",
    }
);

impl CheckConclusion {
    /// Whether this conclusion satisfies a required check: NEUTRAL, SUCCESS or SKIPPED.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Success | Self::Neutral | Self::Skipped)
    }
}

/// A check as last reported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Check {
    /// Its name, as the required statuses name it.
    pub name: String,
    /// Its status.
    pub status: CheckStatus,
    /// Its conclusion, once completed.
    pub conclusion: Option<CheckConclusion>,
    /// The URL of its details; may be empty.
    pub url: String,
    /// One line of detail: what failed, how long it took.
    pub summary: Option<String>,
    /// When it was reported.
    pub at: Timestamp,
    /// If it failed and counts as passed: the quarantined tests that failed, each with who or what
    /// quarantined it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub excused: Vec<String>,
}

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RunStatus {
    /// Its candidate is being built.
    Building,
    /// Its checks are running.
    Testing,
    /// All required statuses succeeded.
    Passed,
    /// A required status failed, or the run timed out.
    Failed {
        /// The kind of failure.
        failure: TestFailure,
        /// The failed statuses, or the timeout.
        details: Vec<String>,
    },
    /// It was cancelled before it had a result.
    Cancelled {
        /// Why it was cancelled.
        reason: RunCancelReason,
    },
}

impl RunStatus {
    /// The name in the API, upper case.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Building | Self::Testing => "IN_PROGRESS",
            Self::Passed => "SUCCEEDED",
            Self::Failed { .. } => "FAILED",
            Self::Cancelled { .. } => "CANCELLED",
        }
    }

    /// Whether it occupies a slot: it is building or testing.
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Building | Self::Testing)
    }
}

/// A test run of a group of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TestRun {
    /// Its id, which is also the last part of the test branch's name.
    pub id: RunId,
    /// Its number within the queue; later runs have higher ones.
    pub number: u64,
    /// Whether it belongs to a bisection.
    pub bisection: bool,
    /// The entries that it tests, in line order; several if it is a batch.
    pub group: Arc<[Member]>,
    /// The pull requests that its candidate contains besides its group, in line order, each with
    /// the run that it was in when this one started.
    pub ahead: Arc<[(RunId, PrNumber)]>,
    /// The commit that the candidate is built on: the candidate of a run ahead, or the target's
    /// head.
    pub base: Sha,
    /// The commit of the target that the candidate contains; `None` if it is no longer known.
    #[cfg_attr(feature = "serde", serde(default))]
    pub root: Option<Sha>,
    /// Whether it may pass without tests, on the checks of its pull request's own head.
    #[cfg_attr(feature = "serde", serde(default))]
    pub direct: bool,
    /// How changes become commits.
    pub method: MergeMethod,
    /// The test branch.
    pub branch: BranchName,
    /// The commit under test, once built.
    pub candidate: Option<Candidate>,
    /// The pull requests of the group that add no changes to the base.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub empty: Vec<PrNumber>,
    /// How the composition of its candidate was checked; `None` if that is not known.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub composition: Option<Composition>,
    /// The required statuses, once known.
    pub required: Option<RequiredStatuses>,
    /// Checks as last reported, in order of first report.
    pub checks: Vec<Check>,
    /// Its status.
    pub status: RunStatus,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it times out; `None` if the test timeout is 0.
    pub deadline: Option<Timestamp>,
    /// When its candidate was pushed, so that checks could start.
    #[cfg_attr(feature = "serde", serde(default))]
    pub built_at: Option<Timestamp>,
    /// Required statuses without a report [`SILENCE_MINUTES`] after the push.
    #[cfg_attr(feature = "serde", serde(default))]
    pub silent: Vec<String>,
    /// Whether its checks are read from a host whose CI runs them.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
    pub read: bool,
    /// When the first of its required checks started, or ended without a known start.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub first_check_at: Option<Timestamp>,
    /// What is known about the causes of failed checks.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub causes: Vec<CheckCause>,
    /// The retries of its failed checks, in order.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub retries: Vec<Retry>,
}

/// Minutes after the push of a candidate after which a required status without any report counts as
/// silent. The usual cause is a name that no workflow reports.
pub const SILENCE_MINUTES: u32 = 10;

impl TestRun {
    /// Whether its candidate contains that pull request besides its own group.
    pub fn contains(&self, pr: PrNumber) -> bool {
        self.ahead.iter().any(|(_, ahead)| *ahead == pr)
    }

    /// All pull requests that its candidate contains, in line order.
    pub fn prs(&self) -> impl Iterator<Item = PrNumber> {
        self.ahead.iter().map(|(_, pr)| *pr).chain(self.group.iter().map(|member| member.pr))
    }

    /// When to record silent required statuses; `None` if every status has reported or the silence
    /// is recorded.
    pub fn silence_due(&self) -> Option<Timestamp> {
        let built_at = self.built_at.filter(|_| self.status == RunStatus::Testing)?;
        let unreported = self.silent.is_empty() && self.unreported().next().is_some();
        unreported.then(|| built_at.plus(Span::minutes(SILENCE_MINUTES)))
    }

    /// The required statuses without any report.
    pub fn unreported(&self) -> impl Iterator<Item = &str> {
        let required = self.required.iter().flat_map(|required| required.names.iter());
        required
            .filter(|name| !self.checks.iter().any(|check| check.name == **name))
            .map(AsRef::as_ref)
    }

    /// The reported required checks that the run waits for: after a retry, the ones that run again.
    fn awaited(&self) -> impl Iterator<Item = &Check> {
        let names = self.required.as_ref().map(|it| it.names.as_slice()).unwrap_or_default();
        let again = self.retrying().map(|retry| retry.failed.as_slice()).unwrap_or_default();
        let is_awaited = |name: &String| {
            names.contains(name) && (again.is_empty() || again.iter().any(|it| it.name == *name))
        };
        self.checks.iter().filter(move |check| is_awaited(&check.name))
    }

    /// Whether one of its required checks has started.
    pub fn has_started(&self) -> bool {
        self.awaited().any(|check| check.status != CheckStatus::Queued)
    }

    /// The required checks that wait for a runner, if there is one and none has started.
    pub fn queued(&self) -> Option<Vec<String>> {
        let names: Vec<String> = self.awaited().map(|check| check.name.clone()).collect();
        (!names.is_empty() && !self.has_started()).then_some(names)
    }

    /// The number of completed required checks, and the number of required checks.
    pub fn progress(&self) -> (usize, usize) {
        let Some(required) = &self.required else { return (0, 0) };
        let done = required
            .names
            .iter()
            .filter(|name| {
                self.checks
                    .iter()
                    .any(|check| check.name == **name && check.status == CheckStatus::Completed)
            })
            .count();
        (done, required.names.len())
    }
}
