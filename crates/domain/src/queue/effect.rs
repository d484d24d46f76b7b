//! Effects: calls to the git host and the checks runner that follow a committed transition. An
//! effect contains everything needed to carry it out; its runner makes no choices.

use std::sync::Arc;

use crate::ids::{BranchName, PrNumber, RunId, Sha};

use super::{Candidate, Check, Dependency, Entry, MergeMethod};
use crate::words::words;

/// One pull request's changes, to be applied to a base.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Change {
    /// The pull request.
    pub pr: PrNumber,
    /// Its head commit.
    pub head: Sha,
    /// The title of the squash or merge commit.
    pub title: String,
    /// The body of the commit message; may be empty.
    pub body: String,
    /// The author's login or name on the host.
    pub author: String,
}

impl Change {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            pr: entry.pr,
            head: entry.pull_request.head.clone(),
            title: entry.pull_request.commit_title().to_owned(),
            body: entry.pull_request.body.clone(),
            author: entry.pull_request.author.clone(),
        }
    }
}

/// A run ahead whose candidate the new one is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ahead {
    /// The run.
    pub run: RunId,
    /// The commit of its candidate.
    pub sha: Sha,
}

/// Builds a candidate and pushes it as a test branch. Answered by `candidate_built`,
/// `candidate_conflict`, `candidate_mismatch` or `candidate_refused`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BuildCandidate {
    /// The run that tests the candidate.
    pub run: RunId,
    /// The target branch.
    pub target: BranchName,
    /// The target's head when the run was started.
    pub target_head: Sha,
    /// The commit to build on.
    pub base: Sha,
    /// Changes ahead that `base` does not contain, applied first; each with the run that tests it.
    pub before: Vec<(RunId, Arc<Change>)>,
    /// The candidates ahead, in line order. On a conflict the host names the first of them that the
    /// changes conflict with.
    pub ahead: Vec<Ahead>,
    /// The group's own changes, in this order.
    pub changes: Vec<Change>,
    /// How the changes become commits.
    pub method: MergeMethod,
    /// The test branch to push.
    pub branch: BranchName,
    /// Whether to return the checks of the only pull request's own head, if its tree is the
    /// candidate's.
    pub direct: bool,
}

/// Runs or reads the checks of a candidate. Answered by `checks_reported`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunChecks {
    /// The run.
    pub run: RunId,
    /// The commit to test.
    pub candidate: Candidate,
    /// The test branch.
    pub branch: BranchName,
    /// The target branch, whose protection names the app that must report a required status.
    pub target: BranchName,
    /// The commit of the target branch whose configuration defines the checks. A pull request
    /// cannot change its own checks.
    pub config_from: Sha,
    /// The pull requests under test.
    pub prs: Vec<PrNumber>,
    /// The required statuses without external checks; checks of other names need not run.
    pub required: Vec<String>,
    /// The failed checks that must run again, as they were reported; empty for the first time. Others
    /// need not run. Where the host's CI runs them, it runs them again with all that depend on them,
    /// and then every required check is reported again.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub again: Vec<Check>,
}

/// Lands a tested candidate on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Land {
    /// The run whose candidate lands.
    pub run: RunId,
    /// The target branch.
    pub target: BranchName,
    /// The head that the target must have.
    pub expected: Sha,
    /// The tested candidate.
    pub candidate: Candidate,
    /// Whether the tested tree itself must land. When false, the target has gained changes that
    /// share no impacted target with these, and the clean three-way merge of target and candidate
    /// must land.
    pub exact: bool,
    /// The changes that the landing adds to `expected`, in order, with the tested heads.
    pub changes: Vec<Change>,
    /// How the changes became commits.
    pub method: MergeMethod,
}

/// A call to the git host or the checks runner. [`ANSWERS`] lists the facts that answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Effect {
    /// Reads the target's head from the host.
    InspectTarget {
        /// The target branch.
        branch: BranchName,
    },
    /// Reads the state of a dependency. Answered by `dependency_seen`.
    InspectDependency {
        /// The dependency.
        on: Dependency,
    },
    /// Reads the paths that a pull request changes, and computes its impacted targets from them by the
    /// queue's rules. Answered by `targets_computed`.
    ComputeTargets {
        /// The pull request.
        pr: PrNumber,
        /// Its head.
        head: Sha,
        /// The [revision](super::Header::rules_revision) of the rules. The effect is skipped once the
        /// queue has another revision.
        revision: u64,
    },
    /// Builds a candidate.
    BuildCandidate(BuildCandidate),
    /// Runs the checks of a candidate.
    RunChecks(RunChecks),
    /// Stops the checks of a run, here or in the host's CI.
    CancelChecks {
        /// The run.
        run: RunId,
        /// Its candidate and its test branch, if the host's CI may still test them.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        on_host: Option<(Sha, BranchName)>,
    },
    /// Reads the test reports of failed checks, until they are complete or the run ends. Answered
    /// by `causes_found`.
    FindCauses {
        /// The run.
        run: RunId,
        /// The tested commit.
        sha: Sha,
        /// The failed checks.
        checks: Vec<Check>,
    },
    /// Deletes a test branch.
    DeleteBranch {
        /// The test branch.
        branch: BranchName,
        /// The head that the branch must have; `None` when its candidate was never reported.
        expected: Option<Sha>,
    },
    /// Lands a candidate on the target.
    Land(Land),
    /// Opens a draft pull request from a test branch, on hosts whose CI runs for pull requests
    /// only. No fact answers it.
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
    /// Asks the host which landings the target still contains, after a push from outside the queue.
    CheckLandings {
        /// The target branch.
        branch: BranchName,
        /// The target's head before the push.
        was: Sha,
        /// The target's head after the push.
        head: Sha,
        /// The merged pull requests that the target did not contain before the push.
        off_target: Vec<PrNumber>,
    },
}

words!(
    /// The worker pool that runs an effect.
    EffectClass {
        /// Short calls to the git host: every effect but [`Effect::RunChecks`].
        Host = "HOST",
        /// Checks: long, and only a few at a time.
        Checks = "CHECKS",
    }
);

impl Effect {
    /// The worker pool that runs it.
    pub const fn class(&self) -> EffectClass {
        match self {
            Self::RunChecks(_) => EffectClass::Checks,
            Self::InspectTarget { .. }
            | Self::InspectDependency { .. }
            | Self::ComputeTargets { .. }
            | Self::BuildCandidate(_)
            | Self::CancelChecks { .. }
            | Self::FindCauses { .. }
            | Self::DeleteBranch { .. }
            | Self::Land(_)
            | Self::OpenTestPullRequest { .. }
            | Self::CheckLandings { .. } => EffectClass::Host,
        }
    }

    /// The run that it belongs to; `None` for effects of the whole queue.
    pub const fn run(&self) -> Option<RunId> {
        match self {
            Self::BuildCandidate(build) => Some(build.run),
            Self::RunChecks(checks) => Some(checks.run),
            Self::CancelChecks { run, .. }
            | Self::FindCauses { run, .. }
            | Self::OpenTestPullRequest { run, .. } => Some(*run),
            Self::Land(land) => Some(land.run),
            Self::InspectTarget { .. }
            | Self::InspectDependency { .. }
            | Self::ComputeTargets { .. }
            | Self::DeleteBranch { .. }
            | Self::CheckLandings { .. } => None,
        }
    }

    /// A short name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InspectTarget { .. } => "inspect_target",
            Self::InspectDependency { .. } => "inspect_dependency",
            Self::ComputeTargets { .. } => "compute_targets",
            Self::BuildCandidate(_) => "build_candidate",
            Self::RunChecks(_) => "run_checks",
            Self::CancelChecks { .. } => "cancel_checks",
            Self::FindCauses { .. } => "find_causes",
            Self::DeleteBranch { .. } => "delete_branch",
            Self::Land(_) => "land",
            Self::OpenTestPullRequest { .. } => "open_test_pull_request",
            Self::CheckLandings { .. } => "check_landings",
        }
    }
}

/// An effect with its number within the queue. Queue id and number identify it, so a repeat is
/// recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NumberedEffect {
    /// Its number within the queue; grows from effect to effect.
    pub number: u64,
    /// The effect.
    pub effect: Effect,
}

/// The facts that answer an effect, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The [`Effect::name`].
    pub effect: &'static str,
    /// The [`Fact::name`](super::Fact::name)s that its runner may report; empty when the planner
    /// expects no answer. While the host is unavailable, any effect may be followed by
    /// `host_unreachable` and is retried.
    pub facts: &'static [&'static str],
}

/// The answers of every effect.
pub const ANSWERS: &[Answer] = &[
    Answer { effect: "inspect_target", facts: &["target_seen", "target_missing"] },
    Answer { effect: "inspect_dependency", facts: &["dependency_seen"] },
    Answer { effect: "compute_targets", facts: &["targets_computed"] },
    Answer {
        effect: "build_candidate",
        facts: &[
            "candidate_built",
            "candidate_conflict",
            "candidate_mismatch",
            "candidate_refused",
            "pull_request_seen",
            "pull_request_gone",
            "target_seen",
            "target_missing",
        ],
    },
    Answer { effect: "run_checks", facts: &["checks_reported"] },
    Answer { effect: "cancel_checks", facts: &[] },
    Answer { effect: "find_causes", facts: &["causes_found"] },
    Answer { effect: "delete_branch", facts: &[] },
    Answer { effect: "land", facts: &["landed", "land_refused"] },
    Answer { effect: "check_landings", facts: &["landings_checked"] },
];
