//! Test runs: one try at testing a group of entries on a candidate commit.

use crate::ids::{BranchName, EntryId, PrNumber, RunId, Sha, TreeId};
use crate::time::{Span, Timestamp};

use super::{MergeMethod, RunCancelReason, TestFailure};
use crate::words::words;

/// A pull request as it is part of a run.
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
    /// Its page.
    pub url: String,
}

/// The commit that is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Candidate {
    /// The commit.
    pub sha: Sha,
    /// Its tree: what must be on the target in the end.
    pub tree: TreeId,
}

words!(
    /// Who said which statuses are required.
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
    /// Who said so.
    pub source: StatusSource,
}

words!(
    /// How far a check is.
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
    /// How a check ended.
    CheckConclusion {
        /// Somebody must act.
        ActionRequired = "ACTION_REQUIRED",
        /// It was stopped.
        Cancelled = "CANCELLED",
        /// It failed.
        Failure = "FAILURE",
        /// Neither good nor bad; counts as success.
        Neutral = "NEUTRAL",
        /// It succeeded.
        Success = "SUCCESS",
        /// It did not have to run; counts as success.
        Skipped = "SKIPPED",
        /// Nobody heard of it for too long.
        Stale = "STALE",
        /// It took too long.
        TimedOut = "TIMED_OUT",
    }
);

impl CheckConclusion {
    /// Whether a required check with this conclusion is fulfilled.
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
    /// How far it is.
    pub status: CheckStatus,
    /// How it ended, once completed.
    pub conclusion: Option<CheckConclusion>,
    /// Where to read more.
    pub url: String,
    /// A line for people: what failed, how long it took.
    pub summary: Option<String>,
    /// When it was reported.
    pub at: Timestamp,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RunStatus {
    /// Its candidate is being built.
    Building,
    /// Its checks are awaited.
    Testing,
    /// All required statuses succeeded.
    Passed,
    /// A required status failed, or it took too long.
    Failed {
        /// Which of the two.
        failure: TestFailure,
        /// Which statuses, or how long.
        details: Vec<String>,
    },
    /// It was given up before it had a result.
    Cancelled {
        /// Why.
        reason: RunCancelReason,
    },
}

impl RunStatus {
    /// The word on the wire, upper case.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Building | Self::Testing => "IN_PROGRESS",
            Self::Passed => "SUCCEEDED",
            Self::Failed { .. } => "FAILED",
            Self::Cancelled { .. } => "CANCELLED",
        }
    }

    /// Whether it still takes a slot.
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Building | Self::Testing)
    }
}

/// One try at testing a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TestRun {
    /// Its id, also the end of its branch's name.
    pub id: RunId,
    /// Its number within the queue; later runs have higher ones.
    pub number: u64,
    /// Whether it belongs to a bisection.
    pub bisection: bool,
    /// The entries under test, in line order; one unless it is a batch.
    pub group: Vec<Member>,
    /// The pull requests that its candidate contains besides its group, in line order, each with
    /// the run that it was in when this one started.
    pub ahead: Vec<(RunId, PrNumber)>,
    /// The commit that the candidate is built on: the candidate of a run ahead, or the target's
    /// head.
    pub base: Sha,
    /// The commit of the target that the candidate contains; `None` when it is not known any more.
    #[cfg_attr(feature = "serde", serde(default))]
    pub root: Option<Sha>,
    /// Whether it may pass without a test, on what its pull request's own head has shown.
    #[cfg_attr(feature = "serde", serde(default))]
    pub direct: bool,
    /// How changes become commits.
    pub method: MergeMethod,
    /// The test branch.
    pub branch: BranchName,
    /// What is tested, once built.
    pub candidate: Option<Candidate>,
    /// The pull requests of the group that add nothing to what the candidate is built on.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub empty: Vec<PrNumber>,
    /// What must succeed, once known.
    pub required: Option<RequiredStatuses>,
    /// Checks as last reported, in order of first report.
    pub checks: Vec<Check>,
    /// How far it is.
    pub status: RunStatus,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it counts as failed.
    pub deadline: Option<Timestamp>,
    /// When its candidate was on its branch, so that checks could start.
    #[cfg_attr(feature = "serde", serde(default))]
    pub built_at: Option<Timestamp>,
    /// Required statuses of which nothing was heard for [`SILENCE_MINUTES`] after that.
    #[cfg_attr(feature = "serde", serde(default))]
    pub silent: Vec<String>,
}

/// How long after the push of a candidate its required statuses should have been heard of. A
/// status that nobody reports is nearly always a matter of configuration.
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

    /// When the silence of required statuses is to be noted; `None` when all were heard of, or
    /// the silence was noted.
    pub fn silence_due(&self) -> Option<Timestamp> {
        let built_at = self.built_at.filter(|_| self.status == RunStatus::Testing)?;
        let unheard = self.silent.is_empty() && self.unheard().next().is_some();
        unheard.then(|| built_at.plus(Span::minutes(SILENCE_MINUTES)))
    }

    /// The required statuses of which nothing was heard.
    pub fn unheard(&self) -> impl Iterator<Item = &str> {
        let required = self.required.iter().flat_map(|required| required.names.iter());
        required
            .filter(|name| !self.checks.iter().any(|check| check.name == **name))
            .map(AsRef::as_ref)
    }

    /// The required checks that have ended, and how many are required.
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
