//! Reasons: the vocabulary that events, exits and timelines share.

use crate::words::words;

use super::PrState;

words!(
    /// The channel of a submission.
    SubmitReason {
        /// A user of the host, by comment or label, or of the pages.
        UserRequested = "USER_REQUESTED",
        /// An operator of the server.
        AdminRequested = "TRUNK_ADMIN_REQUESTED",
        /// A client of the API.
        ApiRequested = "API_REQUESTED",
    }
);

words!(
    /// Why an entry entered the line or returned to it.
    QueuedReason {
        /// Every condition for entering the line holds.
        NowReady = "MERGE_ITEM_NOW_READY",
        /// A push from outside the queue moved the target.
        TargetPushed = "MANUAL_PUSH_TO_TARGET_BRANCH",
        /// A pull request ahead was cancelled.
        PredecessorCancelled = "PREREQUISITE_MERGE_ITEM_CANCELLED",
        /// A pull request ahead failed.
        PredecessorFailed = "PREREQUISITE_MERGE_ITEM_FAILED",
        /// A pull request ahead was merged outside the queue.
        PredecessorMergedManually = "PREREQUISITE_MERGE_ITEM_MANUALLY_MERGED",
        /// A user restarted the tests.
        RestartedByUser = "TESTS_RESTARTED_BY_USER",
        /// A client of the API restarted the tests.
        RestartedByApi = "TESTS_RESTARTED_BY_API_REQUEST",
        /// An urgent entry went to the front.
        SkipTheLineInterrupted = "SKIP_THE_LINE_INTERRUPTED",
        /// Its batch failed and is bisected.
        BisectionRequired = "BISECTION_REQUIRED",
        /// The bisection of its failed batch is over; it is tested again behind the line.
        BisectionTestRunPassed = "BISECTION_TEST_RUN_PASSED",
        /// A run that contained it failed while runs ahead were unfinished; it is tested on the target
        /// alone.
        FailedBehindUnfinished = "TEST_RUN_FAILED_BEHIND_UNFINISHED",
        /// It was tested on the target alone, and returns to the line without a result.
        ReturnedToLine = "RETURNED_TO_LINE",
        /// It passed on the target alone, and is tested again behind the line.
        PassedAlone = "PASSED_ON_TARGET_ALONE",
        /// Its impacted targets changed.
        TargetsChanged = "IMPACTED_TARGETS_CHANGED",
        /// The host's answer was lost; the call is repeated.
        AnswerLost = "HOST_ANSWER_LOST",
        /// Its candidate was not the target with its changes.
        CompositionMismatch = "COMPOSITION_MISMATCH",
        /// Its tests failed as they fail on the target branch; it is tested again when that moves.
        TargetRed = "TARGET_RED",
        /// A freeze applies to a pull request ahead, or to one that it was tested with.
        PredecessorFrozen = "PREREQUISITE_MERGE_ITEM_FROZEN",
        /// It conflicts with a pull request ahead and waits until that one merges or leaves.
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
        /// The result follows from other runs.
        Optimization = "PASSED_BY_OPTIMIZATION",
        /// The same tree had passed before.
        SameTree = "SAME_TREE_PASSED_BEFORE",
        /// The required statuses succeeded on the pull request's own head, which has the
        /// candidate's tree.
        OwnHead = "HEAD_PASSED_ON_TARGET",
    }
);

words!(
    /// Why a test run failed.
    TestFailure {
        /// A required status failed.
        RequiredStatus = "TEST_RUN_REQUIRED_STATUS_FAILED",
        /// The run exceeded the test timeout.
        Timeout = "TEST_RUN_TIMEOUT",
        /// The result follows from other runs.
        Optimization = "TEST_RUN_FAILED_BY_OPTIMIZATION",
    }
);

words!(
    /// Why an entry failed.
    FailReason {
        /// The candidate could not be built: the changes conflict.
        MergeConflict = "START_TEST_RUN_MERGE_CONFLICT",
        /// The repository's configuration is invalid.
        ConfigParsingFailure = "START_TEST_RUN_CONFIG_PARSING_FAILURE",
        /// No source names a required status.
        NoRequiredStatuses = "START_TEST_RUN_NO_REQUIRED_STATUSES",
        /// The host refused the push of the candidate.
        StartRefused = "START_TEST_RUN_RETRY_EXHAUSTED",
        /// A required status failed.
        RequiredStatus = "TEST_RUN_REQUIRED_STATUS_FAILED",
        /// The run exceeded the test timeout.
        Timeout = "TEST_RUN_TIMEOUT",
        /// The result follows from other runs.
        Optimization = "TEST_RUN_FAILED_BY_OPTIMIZATION",
        /// The pull request was pushed to during its landing.
        UpdatedAtMergeTime = "PR_UPDATED_AT_MERGE_TIME",
        /// The host refused the merge.
        MergeRefused = "GITHUB_API_MERGE_PR_FAILED",
    }
);

words!(
    /// What blocked a failed pull request.
    BlockReason {
        /// A merge conflict.
        MergeConflict = "MERGE_CONFLICT",
        /// A required status failed.
        FailingRequiredCheck = "FAILING_REQUIRED_CHECK",
        /// A required status was not reported in time.
        AwaitingRequiredCheck = "AWAITING_REQUIRED_CHECK",
        /// Another cause; see the reason and the details.
        Undetermined = "UNDETERMINED",
    }
);

impl BlockReason {
    /// Classifies a failure; `None` if the pull request is not at fault.
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
    /// The failure of a test run with the same meaning, if there is one.
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
        /// A user or a client of the API cancelled it.
        UserRequested = "USER_REQUESTED",
        /// The pull request was closed.
        Closed = "PR_CLOSED",
        /// The pull request was pushed to.
        PushedTo = "PR_PUSHED_TO",
        /// The pull request's base branch was changed.
        BaseChanged = "PR_BASE_BRANCH_CHANGED",
        /// The pull request became a draft.
        ConvertedToDraft = "PR_CONVERTED_TO_DRAFT",
        /// The pull request was merged into another branch.
        MergedElsewhere = "PR_MERGED_INTO_OTHER_BRANCH",
        /// It was in the line, and a dependency of it has not merged.
        DependencyNotMerged = "DEPENDENCY_NOT_MERGED",
        /// It was not ready within the not-ready timeout.
        NotReadyTimeout = "NOT_READY_TIMEOUT_EXPIRED",
    }
);

words!(
    /// How an entry was merged.
    MergeReason {
        /// The queue landed it.
        Queue = "MERGE_GRAPH_MERGE",
        /// It was merged outside the queue.
        Manual = "MANUAL_MERGE",
        /// The queue landed it without a test run, because it was up to date and tested.
        Direct = "MERGE_GRAPH_DIRECT_MERGE",
        /// The target already contained its changes.
        Already = "ALREADY_MERGED",
    }
);

words!(
    /// How a push from outside the queue changed a landing.
    LandingChange {
        /// The target no longer contains it.
        Removed = "REMOVED_FROM_TARGET_BRANCH",
    }
);

/// Why an entry came to a state, as recorded in the journal and in timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was submitted, and came to NOT_READY.
    Submitted(SubmitReason),
    /// The host no longer allows the merge, and it came to NOT_READY.
    NoLongerReady,
    /// A freeze applies to it, and it came to NOT_READY.
    Frozen,
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
    const FROZEN: &'static str = "FROZEN";

    /// The name in the API, upper case. Reasons of different states may share a name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted(reason) => reason.as_str(),
            Self::NoLongerReady => Self::NO_LONGER_READY,
            Self::Frozen => Self::FROZEN,
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

    /// Parses the name of a reason for a move to this state; `None` if the state has no such
    /// reason.
    pub fn parse(to: PrState, word: &str) -> Option<Self> {
        match to {
            PrState::NotReady if word == Self::NO_LONGER_READY => Some(Self::NoLongerReady),
            PrState::NotReady if word == Self::FROZEN => Some(Self::Frozen),
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

/// Why a test run was cancelled before it had a result. The journal stores its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "&'static str")
)]
pub enum RunCancelReason {
    /// Its pull requests returned to the line.
    Requeued(QueuedReason),
    /// Other runs have proved its result.
    Passed(PassReason),
    /// It could not start.
    Failed(FailReason),
    /// Its pull requests are on the target branch.
    Merged(MergeReason),
}

impl RunCancelReason {
    /// The name in the API, upper case; unique.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requeued(reason) => reason.as_str(),
            Self::Passed(reason) => reason.as_str(),
            Self::Failed(reason) => reason.as_str(),
            Self::Merged(reason) => reason.as_str(),
        }
    }

    /// Parses the name; `None` for an unknown one.
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
