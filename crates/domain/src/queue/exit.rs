//! How entries leave the queue: with what landed, or with who is to blame and the evidence for it.

use crate::ids::{PrNumber, Sha, TreeId};

use super::{
    Actor, CancelReason, Composition, FailReason, MergeMethod, MergeReason, Mismatch, PrState,
    Reason,
};

/// The culprit of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Culprit {
    /// The pull request itself.
    Itself,
    /// Another pull request of the queue.
    PullRequest(PrNumber),
    /// The target branch itself.
    TargetBranch,
    /// The git host, which refused the push or the merge.
    Host,
}

impl Culprit {
    /// Every name, in the order of declaration.
    pub const NAMES: &'static [&'static str] = &["itself", "pull_request", "target_branch", "host"];

    /// The name in the API.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Itself => "itself",
            Self::PullRequest(_) => "pull_request",
            Self::TargetBranch => "target_branch",
            Self::Host => "host",
        }
    }
}

/// The evidence against a pull request that failed its tests: what else the failed candidate
/// contained, and with which candidates it passed before. If the candidate contained nothing else,
/// it failed on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evidence {
    /// The pull requests ahead that the failed candidate contained, all of which passed, in line
    /// order; at most the last 20.
    pub on_top_of: Vec<PrNumber>,
    /// The number of pull requests ahead in the candidate.
    pub ahead: u32,
    /// The pull requests in `on_top_of` that no candidate contained with which it passed; empty if
    /// it never passed at its present head.
    pub passed_without: Vec<PrNumber>,
}

impl Evidence {
    /// The most pull requests that `on_top_of` names.
    pub const NAMED: usize = 20;

    /// Whether it failed on the target branch alone.
    pub const fn is_alone(&self) -> bool {
        self.ahead == 0
    }
}

/// What a landing consists of. With the commits, git computes the landed tree again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LandingProof {
    /// The target's head before the landing.
    pub base: Sha,
    /// The pull requests that landed together and their heads, in the order in which they were
    /// applied.
    pub changes: Vec<(PrNumber, Sha)>,
    /// How the changes became commits.
    pub method: MergeMethod,
    /// Whether the tested tree itself had to land. When false, it was the clean three-way merge of
    /// the target and the tested candidate.
    pub exact: bool,
    /// How the composition was checked; `None` if that is not known.
    pub composition: Option<Composition>,
    /// The difference, if what landed is something else.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub mismatch: Option<Mismatch>,
}

/// How an entry left the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Exit {
    /// Merged: on the target branch.
    Merged {
        /// How it was merged.
        reason: MergeReason,
        /// The commit on the target, if the queue landed it or the host remembers it.
        sha: Option<Sha>,
        /// The tested tree; equal to `landed_tree` by Q1.
        tested_tree: Option<TreeId>,
        /// The landed tree.
        landed_tree: Option<TreeId>,
        /// What landed, if the queue landed it.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        proof: Option<Box<LandingProof>>,
    },
    /// Failed: removed by the queue.
    Failed {
        /// The kind of failure.
        reason: FailReason,
        /// The culprit.
        culprit: Culprit,
        /// Details: failed statuses, conflicting paths, the host's message.
        details: Vec<String>,
        /// The evidence, if its tests failed.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        evidence: Option<Box<Evidence>>,
    },
    /// Cancelled: removed by a user, a client or an event on the host.
    Cancelled {
        /// Why it was cancelled.
        reason: CancelReason,
        /// Who cancelled it.
        by: Actor,
    },
}

impl Exit {
    /// The terminal state.
    pub const fn state(&self) -> PrState {
        match self {
            Self::Merged { .. } => PrState::Merged,
            Self::Failed { .. } => PrState::Failed,
            Self::Cancelled { .. } => PrState::Cancelled,
        }
    }

    /// Why the entry left.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Merged { reason, .. } => Reason::Merged(*reason),
            Self::Failed { reason, .. } => Reason::Failed(*reason),
            Self::Cancelled { reason, .. } => Reason::Cancelled(*reason),
        }
    }
}
