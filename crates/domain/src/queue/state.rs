//! The queue and its entries. States are enums with data: what a state needs, it carries.

use std::sync::Arc;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

use crate::ids::{BranchName, EntryId, OrgId, PrNumber, QueueId, RepoId, RunId, Sha, TreeId};
use crate::time::Timestamp;

use super::order::OrderKey;
use super::{
    Actor, Mergeability, Mode, Place, Priority, PullRequest, Readiness, ReportedTargets, Settings,
    TestRun,
};
use crate::words::words;

words!(
    /// A pull request's state in a queue, as clients see it.
    PrState {
        /// Submitted; something is missing before it may enter the line.
        NotReady = "NOT_READY",
        /// In the line, waiting for its turn.
        Pending = "PENDING",
        /// Being tested; holds a slot.
        Testing = "TESTING",
        /// Tested; waits for what is ahead to land.
        TestsPassed = "TESTS_PASSED",
        /// On the target branch.
        Merged = "MERGED",
        /// Taken out because of a failure.
        Failed = "FAILED",
        /// Taken out on somebody's or some event's request.
        Cancelled = "CANCELLED",
        /// Its run failed, but the fault may lie elsewhere.
        PendingFailure = "PENDING_FAILURE",
    }
);

impl PrState {
    /// Whether the entry has left the queue.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Merged | Self::Failed | Self::Cancelled)
    }
}

words!(
    /// A queue's state, as clients see it.
    QueueStateName {
        /// Everything goes on.
        Running = "RUNNING",
        /// Nothing starts and nothing merges.
        Paused = "PAUSED",
        /// What is in the line is finished; nothing new enters.
        Draining = "DRAINING",
        /// As draining, then on in the other mode.
        SwitchingModes = "SWITCHING_MODES",
    }
);

words!(
    /// The states that can be asked for.
    RequestedState {
        /// Everything goes on.
        Running = "RUNNING",
        /// Nothing starts and nothing merges.
        Paused = "PAUSED",
        /// What is in the line is finished; nothing new enters.
        Draining = "DRAINING",
    }
);

/// A queue's state with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum QueueState {
    /// Everything goes on.
    Running,
    /// Nothing starts and nothing merges.
    Paused {
        /// Who paused it.
        by: Actor,
        /// Why, if it was said.
        reason: Option<String>,
    },
    /// What is in the line is finished; nothing new enters.
    Draining,
    /// The line empties in the old mode; then the queue runs in the new one, which the settings
    /// already name.
    SwitchingModes {
        /// The mode in force until the line is empty.
        from: Mode,
    },
}

impl QueueState {
    /// The state without its data.
    pub const fn name(&self) -> QueueStateName {
        match self {
            Self::Running => QueueStateName::Running,
            Self::Paused { .. } => QueueStateName::Paused,
            Self::Draining => QueueStateName::Draining,
            Self::SwitchingModes { .. } => QueueStateName::SwitchingModes,
        }
    }

    /// Whether ready entries may enter the line.
    pub const fn lets_in(&self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether runs may start and tested entries may land.
    pub const fn moves(&self) -> bool {
        !matches!(self, Self::Paused { .. })
    }
}

words!(
    /// How a submission came.
    SubmitReason {
        /// By a person on the host: comment, label or page.
        UserRequested = "USER_REQUESTED",
        /// By an operator.
        AdminRequested = "TRUNK_ADMIN_REQUESTED",
        /// By the API.
        ApiRequested = "API_REQUESTED",
    }
);

words!(
    /// Why an entry is waiting in the line (again).
    QueuedReason {
        /// Everything that was missing is there.
        NowReady = "MERGE_ITEM_NOW_READY",
        /// The target was moved from outside the queue.
        TargetPushed = "MANUAL_PUSH_TO_TARGET_BRANCH",
        /// A pull request ahead was cancelled.
        PredecessorCancelled = "PREREQUISITE_MERGE_ITEM_CANCELLED",
        /// A pull request ahead failed.
        PredecessorFailed = "PREREQUISITE_MERGE_ITEM_FAILED",
        /// A pull request ahead was merged by hand.
        PredecessorMergedManually = "PREREQUISITE_MERGE_ITEM_MANUALLY_MERGED",
        /// A person asked for another run.
        RestartedByUser = "TESTS_RESTARTED_BY_USER",
        /// The API asked for another run.
        RestartedByApi = "TESTS_RESTARTED_BY_API_REQUEST",
        /// An urgent entry went to the front.
        SkipTheLineInterrupted = "SKIP_THE_LINE_INTERRUPTED",
        /// Its batch failed and is split.
        BisectionRequired = "BISECTION_REQUIRED",
        /// Its part of a split batch passed.
        BisectionPassed = "BISECTION_TEST_RUN_PASSED",
        /// It conflicts with a pull request ahead and waits for that one.
        ConflictWithAhead = "CONFLICT_WITH_PULL_REQUEST_AHEAD",
    }
);

words!(
    /// Why a group counts as passed.
    PassReason {
        /// Its own run passed.
        OwnRun = "TEST_RUN_PASSED",
        /// A run that contains it passed.
        Successor = "SUCCESSOR_TEST_RUN_PASSED",
        /// The result followed from other runs.
        Optimization = "PASSED_BY_OPTIMIZATION",
    }
);

words!(
    /// Why a test run failed.
    TestFailure {
        /// A required status failed.
        RequiredStatus = "TEST_RUN_REQUIRED_STATUS_FAILED",
        /// The run took too long.
        Timeout = "TEST_RUN_TIMEOUT",
        /// The result followed from other runs.
        Optimization = "TEST_RUN_FAILED_BY_OPTIMIZATION",
    }
);

words!(
    /// Why an entry failed.
    FailReason {
        /// The candidate could not be built: the changes conflict.
        MergeConflict = "START_TEST_RUN_MERGE_CONFLICT",
        /// The repository's configuration cannot be read.
        ConfigParsingFailure = "START_TEST_RUN_CONFIG_PARSING_FAILURE",
        /// The list of required statuses in the configuration is not usable.
        ConfigBadRequiredStatuses = "START_TEST_RUN_CONFIG_BAD_REQUIRED_STATUSES",
        /// Nobody says which statuses are required.
        NoRequiredStatuses = "START_TEST_RUN_NO_REQUIRED_STATUSES",
        /// The host refused to take the candidate.
        StartRefused = "START_TEST_RUN_RETRY_EXHAUSTED",
        /// A required status failed.
        RequiredStatus = "TEST_RUN_REQUIRED_STATUS_FAILED",
        /// The run took too long.
        Timeout = "TEST_RUN_TIMEOUT",
        /// The result followed from other runs.
        Optimization = "TEST_RUN_FAILED_BY_OPTIMIZATION",
        /// The pull request was pushed to while it was being merged.
        UpdatedAtMergeTime = "PR_UPDATED_AT_MERGE_TIME",
        /// The host refused the merge.
        MergeRefused = "GITHUB_API_MERGE_PR_FAILED",
    }
);

impl From<TestFailure> for FailReason {
    fn from(failure: TestFailure) -> Self {
        match failure {
            TestFailure::RequiredStatus => Self::RequiredStatus,
            TestFailure::Timeout => Self::Timeout,
            TestFailure::Optimization => Self::Optimization,
        }
    }
}

words!(
    /// Why an entry was cancelled.
    CancelReason {
        /// Somebody asked for it.
        UserRequested = "USER_REQUESTED",
        /// The pull request was closed.
        Closed = "PR_CLOSED",
        /// The pull request got new commits.
        PushedTo = "PR_PUSHED_TO",
        /// The pull request now wants another branch.
        BaseChanged = "PR_BASE_BRANCH_CHANGED",
        /// The pull request became a draft.
        ConvertedToDraft = "PR_CONVERTED_TO_DRAFT",
        /// The pull request was merged into another branch.
        MergedElsewhere = "PR_MERGED_INTO_OTHER_BRANCH",
        /// It was not ready for too long.
        NotReadyTimeout = "NOT_READY_TIMEOUT_EXPIRED",
    }
);

words!(
    /// How an entry was merged.
    MergeReason {
        /// By the queue.
        Queue = "MERGE_GRAPH_MERGE",
        /// By hand, outside the queue.
        Manual = "MANUAL_MERGE",
        /// By the queue, without a run, because it was up to date and tested.
        Direct = "MERGE_GRAPH_DIRECT_MERGE",
    }
);

/// Whose fault a failure is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Culprit {
    /// The pull request itself.
    Itself,
    /// Another pull request of the queue.
    PullRequest(PrNumber),
    /// What is on the target branch.
    TargetBranch,
}

/// How an entry left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Exit {
    /// On the target branch.
    Merged {
        /// How.
        reason: MergeReason,
        /// The commit on the target, when the queue put it there.
        sha: Option<Sha>,
        /// The tree that was tested and the tree that landed; equal by Q1.
        tested_tree: Option<TreeId>,
        /// See `tested_tree`.
        landed_tree: Option<TreeId>,
    },
    /// Taken out because of a failure.
    Failed {
        /// Why.
        reason: FailReason,
        /// Whose fault it is.
        culprit: Culprit,
        /// What exactly: failed statuses, conflicting paths, the host's words.
        details: Vec<String>,
    },
    /// Taken out on request.
    Cancelled {
        /// Why.
        reason: CancelReason,
        /// By whom.
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

    /// The reason's word on the wire, upper case.
    pub const fn reason_word(&self) -> &'static str {
        match self {
            Self::Merged { reason, .. } => reason.word(),
            Self::Failed { reason, .. } => reason.word(),
            Self::Cancelled { reason, .. } => reason.word(),
        }
    }
}

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
    pub place: Place,
    /// When it entered the line, last.
    pub entered_line_at: Option<Timestamp>,
    /// The run that proved it, once merged.
    pub verified_by: Option<RunId>,
}

impl Entry {
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

/// The target branch as last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Target {
    /// Its head; `None` before the host was asked, or when the branch does not exist.
    pub head: Option<Sha>,
    /// The head's tree.
    pub tree: Option<TreeId>,
    /// Whether the host was asked and knows no such branch.
    pub missing: bool,
    /// When it was seen there, or landed on.
    pub seen_at: Option<Timestamp>,
}

/// A landing that was handed to the host and has not been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Landing {
    /// The run whose candidate lands.
    pub run: RunId,
    /// All runs whose groups land with it, in line order; the last is `run`.
    pub runs: Vec<RunId>,
    /// Since when.
    pub since: Timestamp,
}

/// Whether the host answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostHealth {
    /// Since when it does not; `None` when it does.
    pub unreachable_since: Option<Timestamp>,
}

/// A queue without its entries and runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Header {
    /// Its id.
    pub id: QueueId,
    /// Whose it is.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// The target branch.
    pub branch: BranchName,
    /// Its state.
    pub state: QueueState,
    /// Its settings.
    pub settings: Settings,
    /// The target as last seen.
    pub target: Target,
    /// The landing under way.
    pub landing: Option<Landing>,
    /// Whether the host answers.
    pub host: HostHealth,
    /// The last number given to a run, an effect, a place or a journal record.
    pub sequence: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// A merge queue with its live entries and the runs that matter to them.
///
/// The collections share structure: a copy costs nothing, a change costs the logarithm of the
/// length. So the cost of a step does not grow with the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Everything but the collections.
    pub header: Header,
    pub(super) entries: RedBlackTreeMapSync<EntryId, Arc<Entry>>,
    pub(super) line: RedBlackTreeSetSync<OrderKey>,
    pub(super) runs: RedBlackTreeMapSync<RunId, Arc<TestRun>>,
}

impl Queue {
    /// A new, empty queue in RUNNING.
    pub fn new(
        id: QueueId,
        org: OrgId,
        repo: RepoId,
        branch: BranchName,
        settings: Settings,
        at: Timestamp,
    ) -> Self {
        Self::restore(
            Header {
                id,
                org,
                repo,
                branch,
                state: QueueState::Running,
                settings,
                target: Target::default(),
                landing: None,
                host: HostHealth::default(),
                sequence: 0,
                created_at: at,
                deleted: false,
            },
            [],
            [],
        )
    }

    /// Puts a queue together from stored parts: its header, its live entries and their runs.
    pub fn restore(
        header: Header,
        entries: impl IntoIterator<Item = Entry>,
        runs: impl IntoIterator<Item = TestRun>,
    ) -> Self {
        let mut queue = Self {
            header,
            entries: RedBlackTreeMapSync::new_sync(),
            line: RedBlackTreeSetSync::new_sync(),
            runs: RedBlackTreeMapSync::new_sync(),
        };
        for entry in entries {
            queue.put_entry(Arc::new(entry));
        }
        for run in runs {
            queue.runs.insert_mut(run.id, Arc::new(run));
        }
        queue
    }

    /// The entry of that pull request, if it is live.
    pub fn entry_of(&self, pr: PrNumber) -> Option<&Entry> {
        self.entry(self.entry_id(pr))
    }

    /// The live entry with that id.
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id).map(AsRef::as_ref)
    }

    /// The id that this pull request's entry has or will have here: made from the queue's id and
    /// the number, so that it is the same for every submission.
    pub fn entry_id(&self, pr: PrNumber) -> EntryId {
        EntryId(uuid::Uuid::new_v5(&self.header.id.0, format!("entry:{pr}").as_bytes()))
    }

    /// The run with that id, if it still matters to a live entry.
    pub fn run(&self, id: RunId) -> Option<&TestRun> {
        self.runs.get(&id).map(AsRef::as_ref)
    }

    /// All live entries, in queue order; those outside the line last.
    pub fn entries_in_order(&self) -> impl Iterator<Item = &Entry> {
        self.line.iter().filter_map(|key| self.entry(key.entry()))
    }

    /// The runs that matter to live entries, oldest first by id of their start.
    pub fn runs(&self) -> impl Iterator<Item = &TestRun> {
        self.runs.values().map(AsRef::as_ref)
    }

    /// How many entries are live.
    pub fn live(&self) -> usize {
        self.entries.size()
    }

    /// The mode in force: while modes are switched, the old one.
    pub const fn mode(&self) -> Mode {
        match self.header.state {
            QueueState::SwitchingModes { from } => from,
            QueueState::Running | QueueState::Paused { .. } | QueueState::Draining => {
                self.header.settings.mode
            }
        }
    }

    pub(super) fn put_entry(&mut self, entry: Arc<Entry>) {
        if let Some(old) = self.entries.get(&entry.id) {
            self.line.remove_mut(&OrderKey::of(old));
        }
        self.line.insert_mut(OrderKey::of(&entry));
        self.entries.insert_mut(entry.id, entry);
    }

    pub(super) fn remove_entry(&mut self, id: EntryId) {
        if let Some(old) = self.entries.get(&id) {
            self.line.remove_mut(&OrderKey::of(old));
            self.entries.remove_mut(&id);
        }
    }
}
