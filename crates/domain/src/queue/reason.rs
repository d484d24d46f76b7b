//! Why things happen: the vocabulary of reasons, shared by events, exits and timelines.

use crate::ids::{PrNumber, Sha, TreeId};
use crate::words::words;

use super::{Actor, PrState};

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
        /// Its impacted targets were reported anew.
        TargetsChanged = "IMPACTED_TARGETS_CHANGED",
        /// The host's answer was lost, and it is asked again.
        AnswerLost = "HOST_ANSWER_LOST",
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
        /// The same tree had passed before.
        SameTree = "SAME_TREE_PASSED_BEFORE",
        /// The pull request's own head has the tree and its required statuses have succeeded.
        OwnHead = "HEAD_PASSED_ON_TARGET",
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

words!(
    /// What kept a pull request that failed from being merged.
    BlockReason {
        /// Its changes conflict.
        MergeConflict = "MERGE_CONFLICT",
        /// A required status failed.
        FailingRequiredCheck = "FAILING_REQUIRED_CHECK",
        /// A required status did not come in time.
        AwaitingRequiredCheck = "AWAITING_REQUIRED_CHECK",
        /// Something else; the reason and the details say what.
        Undetermined = "UNDETERMINED",
    }
);

impl BlockReason {
    /// What a reason of a failure amounts to; `None` when the pull request was not what is at
    /// fault.
    pub const fn of(reason: FailReason) -> Option<Self> {
        match reason {
            FailReason::MergeConflict => Some(Self::MergeConflict),
            FailReason::RequiredStatus | FailReason::Optimization => {
                Some(Self::FailingRequiredCheck)
            }
            FailReason::Timeout => Some(Self::AwaitingRequiredCheck),
            FailReason::StartRefused
            | FailReason::UpdatedAtMergeTime
            | FailReason::MergeRefused => Some(Self::Undetermined),
            FailReason::ConfigParsingFailure | FailReason::NoRequiredStatuses => None,
        }
    }
}

impl From<TestFailure> for FailReason {
    fn from(failure: TestFailure) -> Self {
        match failure {
            TestFailure::RequiredStatus => Self::RequiredStatus,
            TestFailure::Timeout => Self::Timeout,
            TestFailure::Optimization => Self::Optimization,
        }
    }
}

impl FailReason {
    /// The failure of the test run that it stands for, if it does for one.
    pub const fn test_failure(self) -> Option<TestFailure> {
        match self {
            Self::RequiredStatus => Some(TestFailure::RequiredStatus),
            Self::Timeout => Some(TestFailure::Timeout),
            Self::Optimization => Some(TestFailure::Optimization),
            Self::MergeConflict
            | Self::ConfigParsingFailure
            | Self::NoRequiredStatuses
            | Self::StartRefused
            | Self::UpdatedAtMergeTime
            | Self::MergeRefused => None,
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
        /// Before: it adds nothing to what is on the target.
        Already = "ALREADY_MERGED",
    }
);

words!(
    /// What became of a landing after the target was moved from outside.
    LandingChange {
        /// The target no longer contains it.
        Removed = "REMOVED_FROM_TARGET_BRANCH",
    }
);

/// Why an entry came to a state, as the journal and timelines have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was submitted, and came to NOT_READY.
    Submitted(SubmitReason),
    /// The host no longer lets it be merged, and it came to NOT_READY.
    NoLongerReady,
    /// It came to PENDING.
    Queued(QueuedReason),
    /// A test run was started for it, and it came to TESTING.
    Started,
    /// It came to TESTS_PASSED.
    Passed(PassReason),
    /// It came to PENDING_FAILURE.
    TestsFailed(TestFailure),
    /// It came to FAILED.
    Failed(FailReason),
    /// It came to CANCELLED.
    Cancelled(CancelReason),
    /// It came to MERGED.
    Merged(MergeReason),
    /// It stays MERGED, and its landing changed.
    LandingChanged(LandingChange),
}

impl Reason {
    const STARTED: &'static str = "TEST_RUN_STARTED";
    const NO_LONGER_READY: &'static str = "NO_LONGER_READY";

    /// The word on the wire, upper case. Reasons of different states may have the same.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted(reason) => reason.as_str(),
            Self::NoLongerReady => Self::NO_LONGER_READY,
            Self::Queued(reason) => reason.as_str(),
            Self::Started => Self::STARTED,
            Self::Passed(reason) => reason.as_str(),
            Self::TestsFailed(reason) => reason.as_str(),
            Self::Failed(reason) => reason.as_str(),
            Self::Cancelled(reason) => reason.as_str(),
            Self::Merged(reason) => reason.as_str(),
            Self::LandingChanged(change) => change.as_str(),
        }
    }

    /// Reads the word of a move to that state; `None` for a word that no reason of the state has.
    pub fn parse(to: PrState, word: &str) -> Option<Self> {
        match to {
            PrState::NotReady if word == Self::NO_LONGER_READY => Some(Self::NoLongerReady),
            PrState::NotReady => SubmitReason::parse(word).map(Self::Submitted),
            PrState::Pending => QueuedReason::parse(word).map(Self::Queued),
            PrState::Testing => (word == Self::STARTED).then_some(Self::Started),
            PrState::TestsPassed => PassReason::parse(word).map(Self::Passed),
            PrState::PendingFailure => TestFailure::parse(word).map(Self::TestsFailed),
            PrState::Failed => FailReason::parse(word).map(Self::Failed),
            PrState::Cancelled => CancelReason::parse(word).map(Self::Cancelled),
            PrState::Merged => {
                let changed = || LandingChange::parse(word).map(Self::LandingChanged);
                MergeReason::parse(word).map(Self::Merged).or_else(changed)
            }
        }
    }
}

macro_rules! into_reason {
    ($of:ident: $($kind:ident => $variant:ident),+ $(,)?) => {
        $(impl From<$kind> for $of {
            fn from(reason: $kind) -> Self {
                Self::$variant(reason)
            }
        })+
    };
}

into_reason!(
    Reason:
    SubmitReason => Submitted,
    QueuedReason => Queued,
    PassReason => Passed,
    TestFailure => TestsFailed,
    FailReason => Failed,
    CancelReason => Cancelled,
    MergeReason => Merged,
    LandingChange => LandingChanged,
);

into_reason!(
    RunCancelReason:
    QueuedReason => Requeued,
    PassReason => Passed,
    FailReason => Failed,
    MergeReason => Merged,
);

/// Why a test run was given up before it had a result. The journal stores its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "&'static str")
)]
pub enum RunCancelReason {
    /// Its pull requests went back to the line.
    Requeued(QueuedReason),
    /// Other runs have proved what it was to prove.
    Passed(PassReason),
    /// It could not start.
    Failed(FailReason),
    /// Its pull requests are on the target branch.
    Merged(MergeReason),
}

impl RunCancelReason {
    /// The word on the wire, upper case. No two kinds have the same.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requeued(reason) => reason.as_str(),
            Self::Passed(reason) => reason.as_str(),
            Self::Failed(reason) => reason.as_str(),
            Self::Merged(reason) => reason.as_str(),
        }
    }

    /// Reads the word; `None` for one that no reason has.
    pub fn parse(word: &str) -> Option<Self> {
        QueuedReason::parse(word)
            .map(Self::Requeued)
            .or_else(|| PassReason::parse(word).map(Self::Passed))
            .or_else(|| FailReason::parse(word).map(Self::Failed))
            .or_else(|| MergeReason::parse(word).map(Self::Merged))
    }
}

impl From<RunCancelReason> for &'static str {
    fn from(reason: RunCancelReason) -> Self {
        reason.as_str()
    }
}

impl TryFrom<String> for RunCancelReason {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        Self::parse(&word).ok_or_else(|| format!("unknown reason {word:?} of a run's end"))
    }
}

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
    /// The git host, which refused what it was asked.
    Host,
}

/// What was seen of a pull request that failed its tests: what else its failed candidate contained,
/// and whether it passed without some of that before. Without anything else in the candidate, it
/// was seen to fail on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evidence {
    /// The pull requests ahead that the failed candidate contained, all of which passed, in line
    /// order; at most the last 20.
    pub on_top_of: Vec<PrNumber>,
    /// How many there were.
    pub ahead: u32,
    /// Those of them that were not yet in a candidate with which it passed; empty when it never
    /// passed at its present head.
    pub passed_without: Vec<PrNumber>,
}

impl Evidence {
    /// The most pull requests that are named.
    pub const NAMED: usize = 20;

    /// Whether it was seen to fail with nothing else but the target branch.
    pub const fn is_alone(&self) -> bool {
        self.ahead == 0
    }
}

/// How an entry left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Exit {
    /// On the target branch.
    Merged {
        /// How.
        reason: MergeReason,
        /// The commit on the target, when the queue put it there or the host remembers it.
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
        /// What was seen, when its tests failed.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        evidence: Option<Box<Evidence>>,
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

    /// Why.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Merged { reason, .. } => Reason::Merged(*reason),
            Self::Failed { reason, .. } => Reason::Failed(*reason),
            Self::Cancelled { reason, .. } => Reason::Cancelled(*reason),
        }
    }
}
