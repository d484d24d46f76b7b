//! A pull request's place in a queue.

use std::sync::Arc;

use crate::ids::{BranchName, EntryId, PrNumber, RunId, TreeId};
use crate::time::Timestamp;

use super::{
    Actor, EventBatch, Exit, LinePosition, Mergeability, Mode, PassReason, PrState, Priority,
    PullRequest, QueuedReason, Readiness, ReportedTargets, SubmitReason, TestFailure,
};

/// An entry's state with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EntryState {
    /// Something is missing before it may enter the line.
    NotReady,
    /// In the line, waiting for its turn.
    Pending {
        /// Why it waits there.
        reason: QueuedReason,
        /// It conflicts with this pull request and waits until that one has left or landed.
        held_by: Option<PrNumber>,
        /// The pull request that it was held by before, named if the conflict stays.
        was_held_by: Option<PrNumber>,
    },
    /// Being tested.
    Testing {
        /// Its run.
        run: RunId,
        /// The pull request that it was held by before, named if the conflict stays.
        was_held_by: Option<PrNumber>,
    },
    /// Tested.
    TestsPassed {
        /// The run that proves it.
        run: RunId,
        /// Why it counts as passed.
        reason: PassReason,
    },
    /// Its run failed; the fault may lie elsewhere.
    PendingFailure {
        /// The failed run.
        run: RunId,
        /// What failed.
        failure: TestFailure,
        /// Which statuses, or how long it took.
        details: Vec<String>,
    },
    /// It has left the queue.
    Ended(Exit),
}

impl EntryState {
    /// The state without its data.
    pub const fn name(&self) -> PrState {
        match self {
            Self::NotReady => PrState::NotReady,
            Self::Pending { .. } => PrState::Pending,
            Self::Testing { .. } => PrState::Testing,
            Self::TestsPassed { .. } => PrState::TestsPassed,
            Self::PendingFailure { .. } => PrState::PendingFailure,
            Self::Ended(exit) => exit.state(),
        }
    }

    /// The run that the state refers to.
    pub const fn run(&self) -> Option<RunId> {
        match self {
            Self::Testing { run, .. }
            | Self::TestsPassed { run, .. }
            | Self::PendingFailure { run, .. } => Some(*run),
            Self::NotReady | Self::Pending { .. } | Self::Ended(_) => None,
        }
    }
}

/// A pull request's place in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entry {
    /// The same for every submission of this pull request to this queue.
    pub id: EntryId,
    /// The pull request's number.
    pub pr: PrNumber,
    /// The pull request as last seen.
    pub pull_request: PullRequest,
    /// When the host was asked for it.
    pub seen_at: Timestamp,
    /// How soon it wants its turn.
    pub priority: Priority,
    /// Whether it must be tested alone.
    pub no_batch: bool,
    /// Whether an administrator forced it in.
    pub force_enqueued: bool,
    /// How the submission came.
    pub submit_reason: SubmitReason,
    /// Who submitted it.
    pub submitted_by: Actor,
    /// When it was submitted, last.
    pub submitted_at: Timestamp,
    /// What it touches, if that was reported. Stored apart from the entry: it can be large.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub targets: Option<Arc<ReportedTargets>>,
    /// Its state.
    pub state: EntryState,
    /// Since when.
    pub state_changed_at: Timestamp,
    /// Where it stands.
    pub place: LinePosition,
    /// When it entered the line, last.
    pub entered_line_at: Option<Timestamp>,
    /// The run that proved it, once merged.
    pub verified_by: Option<RunId>,
    /// Since when the target branch is known not to contain it any more, once merged: somebody
    /// moved the branch.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub off_target_since: Option<Timestamp>,
    /// Its part of a failed batch that is being split.
    #[cfg_attr(feature = "serde", serde(default))]
    pub part: Option<Part>,
    /// What was proved of it by a run of its own that passed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub proven: Option<Proven>,
    /// The batch that it was tested in, once a run of others has absolved it: what becomes of it is
    /// told of that batch.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub absolved: Option<Box<EventBatch>>,
}

/// A part of a failed batch. Entries with the same part are tested together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Part {
    /// The number of the batch's run.
    pub batch: u64,
    /// Tells the parts of a queue apart.
    pub number: u64,
    /// Whether it must fail if all of the batch that is before it passes, because the whole has
    /// failed.
    pub implied: bool,
}

/// A result that still holds when the same tree is built again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Proven {
    /// The tree that passed.
    pub tree: TreeId,
    /// The statuses that had succeeded.
    pub statuses: Vec<String>,
    /// What else was in that tree, besides the target branch.
    #[cfg_attr(feature = "serde", serde(default))]
    pub with: Vec<PrNumber>,
}

impl Entry {
    /// Whether it waits in the line and nothing holds it there.
    pub const fn waits_in_line(&self) -> bool {
        matches!(self.state, EntryState::Pending { held_by: None, .. })
    }

    /// Whether a conflict with one ahead holds it in the line.
    pub const fn is_held(&self) -> bool {
        matches!(self.state, EntryState::Pending { held_by: Some(_), .. })
    }

    /// Whether it is still in the queue.
    pub const fn is_live(&self) -> bool {
        !matches!(self.state, EntryState::Ended(_))
    }

    /// What is known about its being ready, under that queue's branch and mode.
    pub fn readiness(&self, branch: &BranchName, mode: Mode) -> Readiness {
        Readiness {
            requires_impacted_targets: mode == Mode::Parallel,
            has_impacted_targets: self
                .targets
                .as_ref()
                .is_some_and(|targets| targets.hold_for(&self.pull_request.head)),
            does_base_branch_match: self.pull_request.base == *branch,
            mergeability: if self.force_enqueued {
                Mergeability::Mergeable
            } else {
                self.pull_request.mergeability.clone()
            },
            draft: self.pull_request.draft,
        }
    }
}
