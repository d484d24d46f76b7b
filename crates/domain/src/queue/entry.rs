//! Entries: pull requests in a queue.

use std::sync::Arc;

use crate::ids::{EntryId, PrNumber, RunId, Sha, TreeId};
use crate::time::Timestamp;

use super::{
    Actor, Dependency, DependencyState, DependsOn, EventBatch, Exit, Header, LinePosition,
    Mergeability, PassReason, PrState, Priority, PullRequest, QueuedReason, Readiness,
    ReportedTargets, Retries, SubmitReason, TargetsOrigin, TestFailure,
};

/// An entry's state with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EntryState {
    /// It may not enter the line yet; [`Readiness::missing`] gives the cause.
    NotReady,
    /// In the line; its tests have not started.
    Pending {
        /// Why it last entered the line.
        reason: QueuedReason,
        /// The pull request ahead that it conflicts with; it waits until that one has left or
        /// landed.
        held_by: Option<PrNumber>,
        /// The pull request that held it before; named as the culprit if the conflict remains.
        was_held_by: Option<PrNumber>,
    },
    /// Being tested.
    Testing {
        /// The run that tests it.
        run: RunId,
        /// The pull request that held it before; named as the culprit if the conflict remains.
        was_held_by: Option<PrNumber>,
    },
    /// Tested; waits for the pull requests ahead to land.
    TestsPassed {
        /// The passed run whose candidate contains it.
        run: RunId,
        /// How the success was established.
        reason: PassReason,
    },
    /// Its run failed; a pull request ahead may be the culprit, or a run behind may absolve it.
    PendingFailure {
        /// The failed run.
        run: RunId,
        /// The kind of failure.
        failure: TestFailure,
        /// The failed statuses, or how long the run took.
        details: Vec<String>,
    },
    /// It has left the queue: merged, failed or cancelled.
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

    /// The run that the state refers to; `None` outside of tests.
    pub const fn run(&self) -> Option<RunId> {
        match self {
            Self::Testing { run, .. }
            | Self::TestsPassed { run, .. }
            | Self::PendingFailure { run, .. } => Some(*run),
            Self::NotReady | Self::Pending { .. } | Self::Ended(_) => None,
        }
    }
}

/// Entries: pull requests in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entry {
    /// The same for every submission of a pull request to a queue.
    pub id: EntryId,
    /// The pull request's number.
    pub pr: PrNumber,
    /// The pull request as last read from the host.
    pub pull_request: Arc<PullRequest>,
    /// When `pull_request` was read from the host.
    pub seen_at: Timestamp,
    /// Its priority; lower goes first.
    pub priority: Priority,
    /// Whether it must be tested alone.
    pub no_batch: bool,
    /// Whether it entered the line although the host reported it as not mergeable.
    pub force_enqueued: bool,
    /// The channel of the last submission.
    pub submit_reason: SubmitReason,
    /// Who submitted it last.
    pub submitted_by: Actor,
    /// When it was last submitted.
    pub submitted_at: Timestamp,
    /// Its impacted targets, if reported. Stored apart from the entry because they can be large.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub targets: Option<Arc<ReportedTargets>>,
    /// Its state.
    pub state: EntryState,
    /// When it entered this state.
    pub state_changed_at: Timestamp,
    /// Its position in the line.
    pub place: LinePosition,
    /// When it last entered the line.
    pub entered_line_at: Option<Timestamp>,
    /// The run whose candidate landed, once merged.
    pub verified_by: Option<RunId>,
    /// When the queue found that the target branch no longer contains the merged pull request,
    /// because a push from outside removed it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub off_target_since: Option<Timestamp>,
    /// Its part of a failed batch that is being bisected.
    #[cfg_attr(feature = "serde", serde(default))]
    pub part: Option<Part>,
    /// The result of its own last passed run, reused when the same tree is built again.
    #[cfg_attr(feature = "serde", serde(default))]
    pub proven: Option<Proven>,
    /// The batch that it was tested in, once a later run has absolved it; its events name that
    /// batch.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub absolved: Option<Box<EventBatch>>,
    /// When it ceased to be ready outside the line, where only the queue kept it before.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub unready_since: Option<Timestamp>,
    /// Whether a run of its head has left the line because runs ahead were unfinished, or it has conflicted
    /// with the target alone.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
    pub reparented: bool,
    /// When it returned to the line from beside it; `None` once a run has started since.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub returned_at: Option<Timestamp>,
    /// How often its failed checks ran again since it was submitted.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Retries::is_none"))]
    pub retries: Retries,
    /// What it depends on, with the states last read; empty while the queue ignores dependencies.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub dependencies: Vec<DependsOn>,
}

/// A part of a failed batch, or a group that is pretested. Entries with the same part are tested
/// together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Part {
    /// The number of the failed run, or of the pretest.
    pub batch: u64,
    /// The part's number, unique within the queue.
    pub number: u64,
    /// Whether its failure follows if the rest of the batch before it passes, because the whole
    /// batch failed.
    pub implied: bool,
    /// Whether the batch is tested beside the line: nothing in the line depends on it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
    pub aside: bool,
    /// Whether it is a group that is tested beside the line before its first run in the line, and not a
    /// part of a failed batch.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
    pub pretest: bool,
    /// What its candidate may lack: then a failure does not show that the part is at fault.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub behind: Option<Behind>,
}

impl Part {
    /// A whole group that is tested on the target alone.
    pub(super) const fn beside(batch: u64, pretest: bool, behind: Option<Behind>) -> Self {
        Self { batch, number: batch, implied: false, aside: true, pretest, behind }
    }

    /// Whether it is a whole group that is tested on the target alone, and no half of a batch, whose parts
    /// have numbers of their own.
    pub const fn is_alone(&self) -> bool {
        self.number == self.batch
    }
}

/// The unfinished pull requests that a failed run contained besides its group, when that left the line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Behind {
    /// The pull requests, front first.
    pub prs: Vec<PrNumber>,
    /// When the run left the line. One that enters the line later was not in the run.
    pub since: Timestamp,
    /// Whether this is what a pretest lacks. It does not wait for pull requests that are suspected of a
    /// failure, and neither does a candidate of the line.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
    pub pretest: bool,
    /// Whether the part has failed since: it is tested again when these have landed or left the line.
    #[cfg_attr(feature = "serde", serde(default))]
    pub failed: bool,
}

/// A result that holds for every candidate with the same tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Proven {
    /// The tree that passed.
    pub tree: TreeId,
    /// The statuses that succeeded.
    pub statuses: Vec<String>,
    /// The other pull requests in that tree.
    #[cfg_attr(feature = "serde", serde(default))]
    pub with: Vec<PrNumber>,
}

impl Entry {
    /// Whether it waits in the line and no conflict holds it.
    pub const fn waits_in_line(&self) -> bool {
        matches!(self.state, EntryState::Pending { held_by: None, .. })
    }

    /// Whether a conflict with a pull request ahead holds it in the line.
    pub const fn is_held(&self) -> bool {
        matches!(self.state, EntryState::Pending { held_by: Some(_), .. })
    }

    /// Whether it has passed a run of its own since it was submitted, so that it will probably pass again.
    pub const fn has_passed(&self) -> bool {
        self.proven.is_some()
    }

    /// Whether it is in a part of a failed batch.
    pub fn is_bisected(&self) -> bool {
        self.part.as_ref().is_some_and(|part| !part.pretest)
    }

    /// Whether it is tested beside the line before its first run in the line.
    pub fn is_pretested(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.pretest)
    }

    /// The batch that is tested beside the line with this entry in it.
    pub fn aside(&self) -> Option<u64> {
        self.part.as_ref().filter(|part| part.aside).map(|part| part.batch)
    }

    /// Whether it has merged with this head.
    pub fn has_merged_with(&self, head: &Sha) -> bool {
        matches!(self.state, EntryState::Ended(Exit::Merged { .. }))
            && self.pull_request.head == *head
    }

    /// The dependencies that have not merged.
    pub fn unmerged_dependencies(&self) -> impl Iterator<Item = &DependsOn> {
        self.dependencies.iter().filter(|it| it.state != DependencyState::Merged)
    }

    /// The pull requests of its own repository that must merge before it.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = PrNumber> {
        self.unmerged_dependencies().filter_map(|it| match it.on {
            Dependency::Own(pr) => Some(pr),
            Dependency::Other(..) | Dependency::Unknown(_) => None,
        })
    }

    /// Since when it has not been ready, for one that is outside the line and not ready.
    pub(super) fn not_ready_since(&self) -> Timestamp {
        self.unready_since.unwrap_or(self.state_changed_at)
    }

    /// Whether it is still in the queue.
    pub const fn is_live(&self) -> bool {
        !matches!(self.state, EntryState::Ended(_))
    }

    /// The targets of its head by which it is tested, if any: after a change of the rules, computed ones
    /// apply in the line until others are computed.
    pub fn applied_targets(&self) -> Option<&ReportedTargets> {
        self.targets.as_deref().filter(|targets| targets.hold_for(&self.pull_request.head))
    }

    /// Its impacted targets, if they are known for its head and, when computed, for the present rules.
    pub fn known_targets(&self, queue: &Header) -> Option<&ReportedTargets> {
        self.applied_targets().filter(|targets| match targets.origin {
            TargetsOrigin::Reported => true,
            TargetsOrigin::Computed { revision, .. } => {
                queue.computes_targets() && revision == queue.rules_revision
            }
        })
    }

    /// The conditions for entering the line of its queue.
    pub fn readiness(&self, queue: &Header) -> Readiness {
        Readiness {
            requires_impacted_targets: queue.requires_targets(),
            has_impacted_targets: self.known_targets(queue).is_some(),
            computes_impacted_targets: queue.computes_targets(),
            does_base_branch_match: self.pull_request.base == queue.branch,
            mergeability: if self.force_enqueued {
                Mergeability::Mergeable
            } else {
                self.pull_request.mergeability.clone()
            },
            draft: self.pull_request.draft,
            dependencies: self.unmerged_dependencies().cloned().collect(),
        }
    }
}
