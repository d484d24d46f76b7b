//! What already happened. Facts are never refused; stale and repeated ones are ignored, and the
//! decision says so.

use crate::ids::{BranchName, PrNumber, RunId, Sha, TreeId};

use crate::time::Timestamp;

use super::{Candidate, Check, Entry, HostTrouble, PullRequest};

/// A check as its source reports it.
pub type CheckReport = Check;

/// What the repository and the host say about required statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostStatuses {
    /// The list in the repository's configuration at the target's head; `None` without a file.
    pub repository: Option<Vec<String>>,
    /// What is wrong with that file, if it cannot be used.
    pub repository_error: Option<String>,
    /// The host's branch protection.
    pub branch_protection: Option<Vec<String>>,
}

/// With what changes conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ConflictWith {
    /// With the target itself.
    Target,
    /// With the candidate of a run ahead.
    Ahead(RunId),
    /// With a pull request before it in the same group.
    Group(PrNumber),
}

/// Why the host did not land a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LandRefusal {
    /// A pull request got new commits.
    HeadMoved {
        /// Which one.
        pr: PrNumber,
    },
    /// The target is not where the candidate was built.
    TargetMoved {
        /// Its head; the expected one when the changes cannot be put on it.
        head: Sha,
        /// The head's tree.
        tree: TreeId,
    },
    /// There is no target branch.
    TargetMissing,
    /// Something else, in the host's words.
    Refused {
        /// The words.
        words: String,
    },
}

/// What already happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Fact {
    /// The host showed a pull request.
    PullRequestSeen {
        /// What it showed.
        pull_request: Box<PullRequest>,
        /// When it was asked; what was known later is not overwritten.
        read_at: Timestamp,
    },
    /// The host does not know a pull request any more.
    PullRequestGone {
        /// Which one.
        pr: PrNumber,
    },
    /// The host showed the target branch.
    TargetSeen {
        /// Its head.
        head: Sha,
        /// The head's tree.
        tree: TreeId,
        /// When the host was asked; what was known later is not overwritten.
        read_at: Timestamp,
    },
    /// The host has no such branch.
    TargetMissing,
    /// A candidate was built and pushed.
    CandidateBuilt {
        /// For which run.
        run: RunId,
        /// The branch that it is on.
        branch: BranchName,
        /// The commit.
        candidate: Candidate,
        /// What is required of it.
        statuses: HostStatuses,
        /// What was reported on the pull request's own head, if that was asked for and its tree is
        /// the candidate's.
        #[cfg_attr(feature = "serde", serde(default))]
        head_checks: Vec<CheckReport>,
        /// The pull requests of the group that add nothing to what it is built on.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
        empty: Vec<PrNumber>,
        /// Whether the host has people who look at pull requests, so that one can be opened from the
        /// test branch.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
        has_forge: bool,
    },
    /// A candidate could not be built: the changes conflict.
    CandidateConflict {
        /// For which run.
        run: RunId,
        /// Which pull request of the group conflicts.
        pr: PrNumber,
        /// With what.
        with: ConflictWith,
        /// The conflicting paths.
        paths: Vec<String>,
    },
    /// The host refused to take a candidate.
    CandidateRefused {
        /// For which run.
        run: RunId,
        /// The host's words.
        words: String,
    },
    /// Checks reported on a candidate.
    ChecksReported {
        /// On which run.
        run: RunId,
        /// On which commit; another one than the run's is ignored.
        sha: Sha,
        /// What they say.
        checks: Vec<CheckReport>,
        /// Whether they were read from the host as they are at that moment, so that a success may
        /// be pending again. What a checks runner tells of its own work never takes a result back:
        /// another runner may have ended it meanwhile.
        #[cfg_attr(feature = "serde", serde(default))]
        read: bool,
    },
    /// A candidate is on the target.
    Landed {
        /// Of which run.
        run: RunId,
        /// The target's new head.
        sha: Sha,
        /// Its tree.
        tree: TreeId,
    },
    /// The host did not land a candidate.
    LandRefused {
        /// Of which run.
        run: RunId,
        /// Why.
        because: LandRefusal,
    },
    /// The host was asked which landings the target contains.
    LandingsChecked {
        /// The target's head before it was moved from outside.
        was: Sha,
        /// Its head after.
        head: Sha,
        /// Merged entries that it no longer contains.
        lost: Vec<Entry>,
        /// Merged entries that it contains again.
        back: Vec<Entry>,
    },
    /// The host did not do what was asked, for a reason that says nothing about any change.
    HostUnreachable {
        /// What is wrong with it.
        trouble: HostTrouble,
    },
    /// The host answered again.
    HostReachable,
    /// The effect of a run that the host was to answer is gone without an answer. Never expected;
    /// the watch over waiting entries finds it.
    AnswerLost {
        /// Of which run.
        run: RunId,
    },
    /// Time has passed; deadlines are looked at.
    TimePassed,
}

impl HostStatuses {
    /// Whether a candidate may be tested by them: at least one is named, and the file that names
    /// them can be used.
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
            Self::TargetSeen { .. } => "target_seen",
            Self::TargetMissing => "target_missing",
            Self::CandidateBuilt { .. } => "candidate_built",
            Self::CandidateConflict { .. } => "candidate_conflict",
            Self::CandidateRefused { .. } => "candidate_refused",
            Self::ChecksReported { .. } => "checks_reported",
            Self::Landed { .. } => "landed",
            Self::LandRefused { .. } => "land_refused",
            Self::LandingsChecked { .. } => "landings_checked",
            Self::HostUnreachable { .. } => "host_unreachable",
            Self::HostReachable => "host_reachable",
            Self::AnswerLost { .. } => "answer_lost",
            Self::TimePassed => "time_passed",
        }
    }
}
