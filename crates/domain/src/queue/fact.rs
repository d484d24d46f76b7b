//! Facts: what happened outside the queue. A fact is never refused; a stale or repeated one is
//! ignored, and a decision records that.

use crate::ids::{BranchName, PrNumber, RunId, Sha, TreeId};

use crate::time::Timestamp;

use super::{
    Candidate, Check, CheckCause, Composition, ComputedTargets, Dependency, DependencyState, Entry,
    HostTrouble, Mismatch, PullRequest,
};

/// A check as a host or a checks runner reports it.
pub type CheckReport = Check;

/// The required statuses that the repository and the host name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostStatuses {
    /// The list in the repository's configuration at the target's head; `None` if there is no file.
    pub repository: Option<Vec<String>>,
    /// The parse error of that file, if it is invalid.
    pub repository_error: Option<String>,
    /// The list of the host's branch protection; `None` without protection.
    pub branch_protection: Option<Vec<String>>,
    /// The external checks that the repository's configuration declares: an external CI runs them
    /// and reports their results through the API.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub external: Vec<String>,
}

/// What the changes conflict with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ConflictWith {
    /// The target branch.
    Target,
    /// The candidate of a run ahead.
    Ahead(RunId),
    /// A pull request before it in the same group.
    Group(PrNumber),
}

/// Why the host did not land a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LandRefusal {
    /// A pull request has new commits.
    HeadMoved {
        /// The pull request.
        pr: PrNumber,
    },
    /// The target has moved since the candidate was built.
    TargetMoved {
        /// The target's head; equal to [`Land::expected`](super::Land::expected) when the changes
        /// cannot be applied to it.
        head: Sha,
        /// The head's tree.
        tree: TreeId,
    },
    /// The target branch does not exist.
    TargetMissing,
    /// The commit to land is not the target with the changes; nothing has landed.
    Mismatch(Mismatch),
    /// The host refused the landing for another reason.
    Refused {
        /// The host's message.
        words: String,
    },
}

/// Something that happened outside the queue. [`absorb`](crate::queue::absorb) takes it in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Fact {
    /// The host showed a pull request.
    PullRequestSeen {
        /// The pull request as read.
        pull_request: Box<PullRequest>,
        /// When it was read; older reads never overwrite newer ones.
        read_at: Timestamp,
    },
    /// The host no longer knows a pull request.
    PullRequestGone {
        /// The pull request.
        pr: PrNumber,
    },
    /// The state of a dependency was read.
    DependencySeen {
        /// The dependency.
        on: Dependency,
        /// Its state.
        state: DependencyState,
    },
    /// The impacted targets of a pull request were computed from the paths that it changes.
    TargetsComputed {
        /// The pull request.
        pr: PrNumber,
        /// The head whose changes were read.
        head: Sha,
        /// The [revision](super::Header::rules_revision) of the rules. The queue ignores targets
        /// of any other revision than its current one.
        revision: u64,
        /// The targets.
        computed: ComputedTargets,
    },
    /// The host showed the target branch.
    TargetSeen {
        /// Its head.
        head: Sha,
        /// The head's tree.
        tree: TreeId,
        /// When it was read; older reads never overwrite newer ones.
        read_at: Timestamp,
    },
    /// The host has no branch of the target's name.
    TargetMissing,
    /// A candidate was built and pushed.
    CandidateBuilt {
        /// The run.
        run: RunId,
        /// The test branch.
        branch: BranchName,
        /// The commit.
        candidate: Candidate,
        /// The required statuses that apply to it.
        statuses: HostStatuses,
        /// The checks of the pull request's own head, if
        /// [`BuildCandidate::direct`](super::BuildCandidate::direct) is set and its tree is the
        /// candidate's.
        #[cfg_attr(feature = "serde", serde(default))]
        head_checks: Vec<CheckReport>,
        /// The pull requests of the group that add no changes to the base.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
        empty: Vec<PrNumber>,
        /// How its composition was checked; `None` if that is not known.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        composition: Option<Composition>,
        /// Whether the host has pull requests, so that a draft can be opened from the test branch.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
        has_forge: bool,
    },
    /// A candidate could not be built: the changes conflict.
    CandidateConflict {
        /// The run.
        run: RunId,
        /// The pull request of the group that conflicts.
        pr: PrNumber,
        /// What it conflicts with.
        with: ConflictWith,
        /// The paths in conflict.
        paths: Vec<String>,
    },
    /// A candidate that was built is not its base with the changes. It was not pushed.
    CandidateMismatch {
        /// The run.
        run: RunId,
        /// The difference.
        mismatch: Mismatch,
    },
    /// The host refused the push of a candidate.
    CandidateRefused {
        /// The run.
        run: RunId,
        /// The host's message.
        words: String,
    },
    /// Checks reported on a candidate.
    ChecksReported {
        /// The run.
        run: RunId,
        /// The tested commit; reports on another commit than the run's are ignored.
        sha: Sha,
        /// The checks as reported.
        checks: Vec<CheckReport>,
        /// Whether the checks were read from the host, where a rerun can turn a success back to
        /// pending. Reports of our own checks runner never take a result back, because another
        /// runner may have finished the check meanwhile.
        #[cfg_attr(feature = "serde", serde(default))]
        read: bool,
    },
    /// What the test reports of failed checks say about their causes.
    CausesFound {
        /// The run.
        run: RunId,
        /// The tested commit; causes on another commit than the run's are ignored.
        sha: Sha,
        /// The checks with their causes.
        causes: Vec<CheckCause>,
    },
    /// A candidate is on the target.
    Landed {
        /// The run.
        run: RunId,
        /// The target's new head.
        sha: Sha,
        /// The head's tree.
        tree: TreeId,
        /// How its composition was checked for the landing; `None` if only the candidate's was.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        composition: Option<Composition>,
    },
    /// The host did not land a candidate.
    LandRefused {
        /// The run.
        run: RunId,
        /// The cause.
        because: LandRefusal,
    },
    /// The host answered which landings the target contains.
    LandingsChecked {
        /// The target's head before the push from outside.
        was: Sha,
        /// The target's head after it.
        head: Sha,
        /// Merged entries that the target no longer contains.
        lost: Vec<Entry>,
        /// Merged entries that the target contains again.
        back: Vec<Entry>,
    },
    /// Landings were proved again.
    LandingsAudited {
        /// The number of commits that are their base with only the recorded changes.
        proved: u32,
        /// The number of commits that could not be checked.
        not_checked: u32,
        /// Merged entries whose commit is something else.
        wrong: Vec<WrongLanding>,
    },
    /// A call to the host failed for a reason unrelated to any change.
    HostUnreachable {
        /// The kind of trouble and the host's message.
        trouble: HostTrouble,
    },
    /// A call to the host succeeded again.
    HostReachable,
    /// The outbox no longer holds an effect whose answer a run waits for. This is never expected;
    /// the watch over waiting entries reports it.
    AnswerLost {
        /// The run.
        run: RunId,
    },
    /// Time has passed; the planner checks its deadlines.
    TimePassed,
}

/// A merged entry whose commit is not its base with only the recorded changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WrongLanding {
    /// The entry.
    pub entry: Entry,
    /// The difference.
    pub mismatch: Mismatch,
}

impl HostStatuses {
    /// Whether a candidate can be tested: at least one status is named, and the repository's file
    /// is valid.
    pub fn are_usable(&self) -> bool {
        let named = |names: &Option<Vec<String>>| names.as_ref().is_some_and(|it| !it.is_empty());
        self.repository_error.is_none()
            && (named(&self.repository) || named(&self.branch_protection))
    }
}

impl Fact {
    /// A short name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PullRequestSeen { .. } => "pull_request_seen",
            Self::PullRequestGone { .. } => "pull_request_gone",
            Self::DependencySeen { .. } => "dependency_seen",
            Self::TargetsComputed { .. } => "targets_computed",
            Self::TargetSeen { .. } => "target_seen",
            Self::TargetMissing => "target_missing",
            Self::CandidateBuilt { .. } => "candidate_built",
            Self::CandidateConflict { .. } => "candidate_conflict",
            Self::CandidateMismatch { .. } => "candidate_mismatch",
            Self::CandidateRefused { .. } => "candidate_refused",
            Self::ChecksReported { .. } => "checks_reported",
            Self::CausesFound { .. } => "causes_found",
            Self::Landed { .. } => "landed",
            Self::LandRefused { .. } => "land_refused",
            Self::LandingsChecked { .. } => "landings_checked",
            Self::LandingsAudited { .. } => "landings_audited",
            Self::HostUnreachable { .. } => "host_unreachable",
            Self::HostReachable => "host_reachable",
            Self::AnswerLost { .. } => "answer_lost",
            Self::TimePassed => "time_passed",
        }
    }
}
