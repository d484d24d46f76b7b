//! Labels for the reasons of state changes.

use signalbox_domain::queue::{
    CancelReason, FailReason, LandingChange, MergeReason, PassReason, QueuedReason, Reason,
    RunCancelReason, SubmitReason, TestFailure,
};

use super::{Named, Tone, Word, word};

/// The label of a reason; `None` for a reason that adds nothing to the state.
pub fn reason(reason: Reason) -> Option<Word> {
    match reason {
        Reason::Started | Reason::NoLongerReady => None,
        Reason::Frozen => Some(word("Frozen", "pause", Tone::Waiting, "a freeze applies to it")),
        Reason::Submitted(reason) => Some(reason.named()),
        Reason::Queued(reason) => Some(reason.named()),
        Reason::Passed(reason) => Some(reason.named()),
        Reason::TestsFailed(reason) => Some(reason.named()),
        Reason::Failed(reason) => Some(reason.named()),
        Reason::Cancelled(reason) => Some(reason.named()),
        Reason::Merged(reason) => Some(reason.named()),
        Reason::LandingChanged(change) => Some(change.named()),
    }
}

impl Named for SubmitReason {
    fn named(&self) -> Word {
        match self {
            Self::UserRequested => {
                word("Submitted by a user", "enter", Tone::Quiet, "a user submitted it")
            }
            Self::AdminRequested => word(
                "Submitted by an administrator",
                "enter",
                Tone::Quiet,
                "an administrator submitted it",
            ),
            Self::ApiRequested => word(
                "Submitted through the API",
                "enter",
                Tone::Quiet,
                "an API client submitted it",
            ),
        }
    }
}

impl Named for QueuedReason {
    fn named(&self) -> Word {
        match self {
            Self::NowReady => word(
                "Ready",
                "enter",
                Tone::Quiet,
                "everything it needs is there, so it entered the line",
            ),
            Self::TargetPushed => word(
                "Target branch moved",
                "switch",
                Tone::Quiet,
                "commits were pushed to the target branch outside the queue",
            ),
            Self::AnswerLost => word(
                "Answer lost",
                "switch",
                Tone::Warning,
                "the git host's answer was lost, so the request is sent again",
            ),
            Self::PredecessorCancelled => word(
                "Pull request ahead was cancelled",
                "switch",
                Tone::Quiet,
                "a pull request ahead of it was removed",
            ),
            Self::PredecessorFailed => word(
                "Pull request ahead failed",
                "switch",
                Tone::Warning,
                "a pull request ahead of it failed",
            ),
            Self::PredecessorMergedManually => word(
                "Pull request ahead was merged manually",
                "switch",
                Tone::Quiet,
                "a pull request ahead of it was merged outside the queue",
            ),
            Self::RestartedByUser => {
                word("Restarted", "restart", Tone::Quiet, "a user restarted its tests")
            }
            Self::RestartedByApi => word(
                "Restarted through the API",
                "restart",
                Tone::Quiet,
                "an API client restarted its tests",
            ),
            Self::SkipTheLineInterrupted => word(
                "Interrupted by an urgent pull request",
                "switch",
                Tone::Quiet,
                "an urgent pull request went to the front",
            ),
            Self::BisectionRequired => word(
                "Bisecting the batch",
                "split",
                Tone::Warning,
                "its batch failed and is bisected to find the culprit",
            ),
            Self::BisectionTestRunPassed => word(
                "Cleared by bisection",
                "restart",
                Tone::Quiet,
                "it passed in the bisection of its failed batch, and is tested again in the line",
            ),
            Self::FailedBehindUnfinished => word(
                "Tested alone",
                "split",
                Tone::Warning,
                "its test run failed while others ahead were unfinished, or without them, so it is tested on \
                 the target branch alone",
            ),
            Self::ReturnedToLine => word(
                "Back in the line",
                "switch",
                Tone::Quiet,
                "it was tested on the target branch alone, and returns to the line without a result",
            ),
            Self::PassedAlone => word(
                "Passed alone",
                "restart",
                Tone::Quiet,
                "it passed on the target branch alone, and is tested again in the line",
            ),
            Self::PredecessorFrozen => word(
                "Pull request ahead frozen",
                "switch",
                Tone::Quiet,
                "a freeze applies to a pull request ahead, or to one that it was tested with",
            ),
            Self::TargetsChanged => {
                word("Targets changed", "switch", Tone::Quiet, "its impacted targets changed")
            }
            Self::CompositionMismatch => word(
                "Wrong candidate",
                "warning",
                Tone::Bad,
                "its candidate was not its base with the changes of its pull requests, so it was \
                 neither tested nor merged",
            ),
            Self::TargetRed => word(
                "Target branch is red",
                "warning",
                Tone::Warning,
                "its tests failed as they fail on the target branch itself",
            ),
            Self::ConflictWithAhead => word(
                "Conflict with a pull request ahead",
                "warning",
                Tone::Warning,
                "it conflicts with a pull request ahead and waits for it",
            ),
        }
    }
}

impl Named for RunCancelReason {
    fn named(&self) -> Word {
        match self {
            Self::Requeued(reason) => reason.named(),
            Self::Passed(reason) => reason.named(),
            Self::Failed(reason) => reason.named(),
            Self::Merged(reason) => reason.named(),
        }
    }
}

impl Named for PassReason {
    fn named(&self) -> Word {
        match self {
            Self::OwnRun => word("Tests passed", "check", Tone::Good, "its own tests passed"),
            Self::Successor => word(
                "Passed with a later pull request",
                "check",
                Tone::Good,
                "the tests of a later pull request that contains it passed",
            ),
            Self::Optimization => {
                word("No test needed", "check", Tone::Good, "earlier results show that it passes")
            }
            Self::SameTree => word(
                "Same content passed before",
                "check",
                Tone::Good,
                "a test run of exactly this content has passed",
            ),
            Self::OwnHead => word(
                "Tested on its own head",
                "check",
                Tone::Good,
                "its own head is on top of the target branch and passed",
            ),
        }
    }
}

impl Named for TestFailure {
    fn named(&self) -> Word {
        match self {
            Self::RequiredStatus => {
                word("Required check failed", "cross", Tone::Bad, "a required check failed")
            }
            Self::Timeout => word(
                "Tests timed out",
                "cross",
                Tone::Bad,
                "the required checks did not finish before the test timeout",
            ),
            Self::Optimization => {
                word("Known to fail", "cross", Tone::Bad, "earlier results show that it fails")
            }
        }
    }
}

impl Named for FailReason {
    fn named(&self) -> Word {
        match self {
            Self::MergeConflict => {
                word("Merge conflict", "cross", Tone::Bad, "it conflicts with the target branch")
            }
            Self::ConfigParsingFailure => word(
                "Invalid configuration",
                "cross",
                Tone::Bad,
                "the repository's configuration is invalid",
            ),
            Self::NoRequiredStatuses => word(
                "No required checks",
                "cross",
                Tone::Bad,
                "no required check is configured, so nothing would be tested",
            ),
            Self::StartRefused => word(
                "Test run could not start",
                "cross",
                Tone::Bad,
                "the git host repeatedly refused the candidate",
            ),
            Self::RequiredStatus => {
                word("Required check failed", "cross", Tone::Bad, "a required check failed")
            }
            Self::Timeout => word(
                "Tests timed out",
                "cross",
                Tone::Bad,
                "the required checks did not finish before the test timeout",
            ),
            Self::Optimization => {
                word("Known to fail", "cross", Tone::Bad, "earlier results show that it fails")
            }
            Self::UpdatedAtMergeTime => word(
                "Changed while merging",
                "cross",
                Tone::Bad,
                "commits were pushed to it while it was being merged",
            ),
            Self::MergeRefused => {
                word("Merge was refused", "cross", Tone::Bad, "the git host refused the merge")
            }
        }
    }
}

impl Named for CancelReason {
    fn named(&self) -> Word {
        match self {
            Self::UserRequested => {
                word("Removed on request", "minus", Tone::Quiet, "a user removed it")
            }
            Self::Closed => {
                word("Pull request was closed", "minus", Tone::Quiet, "the pull request was closed")
            }
            Self::PushedTo => word(
                "Pull request was pushed to",
                "minus",
                Tone::Quiet,
                "it has new commits, so its test results are out of date",
            ),
            Self::BaseChanged => {
                word("Base branch changed", "minus", Tone::Quiet, "its base is another branch now")
            }
            Self::DependencyNotMerged => word(
                "Dependency not merged",
                "minus",
                Tone::Quiet,
                "a pull request that it depends on has not merged",
            ),
            Self::ConvertedToDraft => word(
                "Converted to a draft",
                "minus",
                Tone::Quiet,
                "its author converted it to a draft",
            ),
            Self::MergedElsewhere => word(
                "Merged into another branch",
                "minus",
                Tone::Quiet,
                "it was merged into another branch",
            ),
            Self::NotReadyTimeout => word(
                "Not ready in time",
                "minus",
                Tone::Quiet,
                "it did not become ready before the timeout",
            ),
        }
    }
}

impl Named for MergeReason {
    fn named(&self) -> Word {
        match self {
            Self::Queue => word(
                "Merged by the queue",
                "merge",
                Tone::Good,
                "the queue merged the tested content into the target branch",
            ),
            Self::Manual => {
                word("Merged manually", "merge", Tone::Quiet, "it was merged outside the queue")
            }
            Self::Direct => word(
                "Merged directly",
                "merge",
                Tone::Good,
                "it was up to date and tested, so the queue merged it as it was",
            ),
            Self::Already => word(
                "Already merged",
                "merge",
                Tone::Quiet,
                "the target branch already contains all of its changes",
            ),
        }
    }
}

impl Named for LandingChange {
    fn named(&self) -> Word {
        match self {
            Self::Removed => word(
                "No longer on the target branch",
                "minus",
                Tone::Bad,
                "the target branch was moved and no longer contains it",
            ),
        }
    }
}
