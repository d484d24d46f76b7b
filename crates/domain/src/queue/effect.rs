//! What must be done outside once a transition is committed. An effect names everything needed to
//! carry it out, so the runner makes no choices.

use crate::ids::{BranchName, PrNumber, RunId, Sha};

use super::{Candidate, MergeMethod};
use crate::words::words;

/// One pull request's changes, to be put on a base.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Change {
    /// The pull request.
    pub pr: PrNumber,
    /// Its head.
    pub head: Sha,
    /// The title of its commit.
    pub title: String,
    /// The rest of the commit's message; may be empty.
    pub body: String,
    /// Its author, as the host names them.
    pub author: String,
}

/// A candidate ahead, on which a new one is built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ahead {
    /// The run.
    pub run: RunId,
    /// Its candidate.
    pub sha: Sha,
}

/// Builds a candidate and pushes it as a test branch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BuildCandidate {
    /// For which run.
    pub run: RunId,
    /// The target branch.
    pub target: BranchName,
    /// The target's head as known to the planner.
    pub target_head: Sha,
    /// The commit to build on.
    pub base: Sha,
    /// What is ahead and not in the base: put on it first, each with the run that it is tested in.
    pub before: Vec<(RunId, Change)>,
    /// The candidates ahead, in line order. On a conflict the first one that the changes conflict
    /// with is to be named.
    pub ahead: Vec<Ahead>,
    /// The group's own changes, in this order.
    pub changes: Vec<Change>,
    /// How.
    pub method: MergeMethod,
    /// The branch to push.
    pub branch: BranchName,
    /// Whether to tell what was reported on the head of the only pull request, if its tree is the
    /// candidate's.
    pub direct: bool,
}

/// Runs the checks of a candidate, on hosts that run them themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunChecks {
    /// Of which run.
    pub run: RunId,
    /// The commit to test.
    pub candidate: Candidate,
    /// Its branch.
    pub branch: BranchName,
    /// The target branch, whose rules say which app must report a required status.
    pub target: BranchName,
    /// The commit of the target branch that the checks' configuration is read from.
    pub config_from: Sha,
    /// The pull requests under test.
    pub prs: Vec<PrNumber>,
    /// The statuses that are required; checks of other names need not run.
    pub required: Vec<String>,
}

/// Puts a tested candidate on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Land {
    /// Whose candidate.
    pub run: RunId,
    /// The target branch.
    pub target: BranchName,
    /// Where the target must be.
    pub expected: Sha,
    /// What was tested.
    pub candidate: Candidate,
    /// Whether the tested tree itself must land. If not, the target holds other changes by now,
    /// which share no target with these: then what lands must be the clean three-way merge of the
    /// target and the candidate.
    pub exact: bool,
    /// The changes that it adds to `expected`, in order, with the heads that were tested.
    pub changes: Vec<Change>,
    /// How they became commits.
    pub method: MergeMethod,
}

/// What must be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Effect {
    /// Ask the host for the target's head.
    InspectTarget {
        /// The target branch.
        branch: BranchName,
    },
    /// Ask the host for a pull request.
    InspectPullRequest {
        /// Which one.
        pr: PrNumber,
    },
    /// Build a candidate.
    BuildCandidate(BuildCandidate),
    /// Run its checks.
    RunChecks(RunChecks),
    /// Stop a run's checks.
    CancelChecks {
        /// Of which run.
        run: RunId,
    },
    /// Delete a test branch.
    DeleteBranch {
        /// Its name.
        branch: BranchName,
        /// Where it must be; `None` when its candidate was never reported.
        expected: Option<Sha>,
    },
    /// Put a candidate on the target.
    Land(Land),
    /// Open a draft pull request from a test branch, on hosts where only those start the checks.
    /// No fact answers it.
    OpenTestPullRequest {
        /// The run that tests the branch.
        run: RunId,
        /// The test branch.
        branch: BranchName,
        /// The target branch.
        target: BranchName,
        /// The pull requests under test.
        prs: Vec<PrNumber>,
    },
    /// Ask the host which landings the target contains, after it was moved from outside.
    CheckLandings {
        /// The target branch.
        branch: BranchName,
        /// Its head before.
        was: Sha,
        /// Its head after.
        head: Sha,
        /// The merged pull requests that it did not contain before.
        off_target: Vec<PrNumber>,
    },
}

words!(
    /// Which kind of worker runs an effect.
    EffectClass {
        /// Short calls to the git host.
        Host = "HOST",
        /// Checks, which take long and are few at a time.
        Checks = "CHECKS",
    }
);

impl Effect {
    /// Which kind of worker runs it.
    pub const fn lane(&self) -> EffectClass {
        match self {
            Self::RunChecks(_) => EffectClass::Checks,
            Self::InspectTarget { .. }
            | Self::InspectPullRequest { .. }
            | Self::BuildCandidate(_)
            | Self::CancelChecks { .. }
            | Self::DeleteBranch { .. }
            | Self::Land(_)
            | Self::OpenTestPullRequest { .. }
            | Self::CheckLandings { .. } => EffectClass::Host,
        }
    }

    /// The run that it is about.
    pub const fn run(&self) -> Option<RunId> {
        match self {
            Self::BuildCandidate(build) => Some(build.run),
            Self::RunChecks(checks) => Some(checks.run),
            Self::CancelChecks { run } | Self::OpenTestPullRequest { run, .. } => Some(*run),
            Self::Land(land) => Some(land.run),
            Self::InspectTarget { .. }
            | Self::InspectPullRequest { .. }
            | Self::DeleteBranch { .. }
            | Self::CheckLandings { .. } => None,
        }
    }

    /// A short name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InspectTarget { .. } => "inspect_target",
            Self::InspectPullRequest { .. } => "inspect_pull_request",
            Self::BuildCandidate(_) => "build_candidate",
            Self::RunChecks(_) => "run_checks",
            Self::CancelChecks { .. } => "cancel_checks",
            Self::DeleteBranch { .. } => "delete_branch",
            Self::Land(_) => "land",
            Self::OpenTestPullRequest { .. } => "open_test_pull_request",
            Self::CheckLandings { .. } => "check_landings",
        }
    }
}

/// An effect with its number within the queue. Queue id and number make repeats harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NumberedEffect {
    /// Its number.
    pub number: u64,
    /// What to do.
    pub effect: Effect,
}

/// Which facts answer an effect, both by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The [`Effect::name`].
    pub effect: &'static str,
    /// The [`Fact::name`](super::Fact::name)s of what its runner may report; empty when the planner
    /// waits for nothing. While the host cannot be used, any effect may be followed by
    /// `host_unreachable` and is tried again.
    pub facts: &'static [&'static str],
}

/// What answers each effect.
pub const ANSWERS: &[Answer] = &[
    Answer { effect: "inspect_target", facts: &["target_seen", "target_missing"] },
    Answer { effect: "inspect_pull_request", facts: &["pull_request_seen", "pull_request_gone"] },
    Answer {
        effect: "build_candidate",
        facts: &[
            "candidate_built",
            "candidate_conflict",
            "candidate_refused",
            "pull_request_seen",
            "pull_request_gone",
            "target_seen",
            "target_missing",
        ],
    },
    Answer { effect: "run_checks", facts: &["checks_reported"] },
    Answer { effect: "cancel_checks", facts: &[] },
    Answer { effect: "delete_branch", facts: &[] },
    Answer { effect: "land", facts: &["landed", "land_refused"] },
    Answer { effect: "check_landings", facts: &["landings_checked"] },
];
