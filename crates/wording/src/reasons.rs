//! Words for the reasons of changes.

use signalbox_domain::queue::{
    CancelReason, FailReason, LandingChange, MergeReason, PassReason, QueuedReason, Reason,
    RunCancelReason, SubmitReason, TestFailure,
};

use super::{Named, Tone, Word, word};

/// The word for a reason; `None` for one that says no more than the state.
pub fn reason(reason: Reason) -> Option<Word> {
    match reason {
        Reason::Started | Reason::NoLongerReady => None,
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
                word("Submitted by a person", "enter", Tone::Quiet, "a person submitted it")
            }
            Self::AdminRequested => word(
                "Submitted by an administrator",
                "enter",
                Tone::Quiet,
                "an administrator submitted it",
            ),
            Self::ApiRequested => {
                word("Submitted through the API", "enter", Tone::Quiet, "a token submitted it")
            }
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
                "nothing is missing any more, so it entered the line",
            ),
            Self::TargetPushed => word(
                "Target branch moved",
                "switch",
                Tone::Quiet,
                "somebody pushed to the target branch past the queue",
            ),
            Self::AnswerLost => word(
                "Answer lost",
                "switch",
                Tone::Warning,
                "the git host's answer was lost, so it is asked again",
            ),
            Self::PredecessorCancelled => word(
                "One ahead was cancelled",
                "switch",
                Tone::Quiet,
                "a pull request that it was built on was taken out",
            ),
            Self::PredecessorFailed => word(
                "One ahead failed",
                "switch",
                Tone::Warning,
                "a pull request that it was built on failed",
            ),
            Self::PredecessorMergedManually => word(
                "One ahead was merged by hand",
                "switch",
                Tone::Quiet,
                "a pull request that it was built on was merged past the queue",
            ),
            Self::RestartedByUser => word(
                "Restarted",
                "restart",
                Tone::Quiet,
                "somebody asked for its tests to be run again",
            ),
            Self::RestartedByApi => word(
                "Restarted through the API",
                "restart",
                Tone::Quiet,
                "a token asked for its tests to be run again",
            ),
            Self::SkipTheLineInterrupted => word(
                "An urgent one went first",
                "switch",
                Tone::Quiet,
                "an urgent pull request went to the front",
            ),
            Self::BisectionRequired => word(
                "Batch is being split",
                "split",
                Tone::Warning,
                "its batch failed and is split to find out which one is at fault",
            ),
            Self::TargetsChanged => word(
                "Targets changed",
                "switch",
                Tone::Quiet,
                "its impacted targets were reported anew",
            ),
            Self::ConflictWithAhead => word(
                "Conflict with one ahead",
                "warning",
                Tone::Warning,
                "it conflicts with a pull request ahead and waits for that one",
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
                "Proven by a later one",
                "check",
                Tone::Good,
                "the tests of a later pull request that contains it passed",
            ),
            Self::Optimization => word(
                "No test needed",
                "check",
                Tone::Good,
                "what is known already shows that it passes",
            ),
            Self::SameTree => word(
                "Same content passed before",
                "check",
                Tone::Good,
                "exactly this content passed before",
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
                "Tests took too long",
                "cross",
                Tone::Bad,
                "the required checks did not end in time",
            ),
            Self::Optimization => word(
                "Known to fail",
                "cross",
                Tone::Bad,
                "what is known already shows that it fails",
            ),
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
                "Configuration is not readable",
                "cross",
                Tone::Bad,
                "the configuration in the repository cannot be read",
            ),
            Self::NoRequiredStatuses => word(
                "No required checks",
                "cross",
                Tone::Bad,
                "no required check is configured, so nothing would be tested",
            ),
            Self::StartRefused => word(
                "Test could not start",
                "cross",
                Tone::Bad,
                "the git host refused the candidate again and again",
            ),
            Self::RequiredStatus => {
                word("Required check failed", "cross", Tone::Bad, "a required check failed")
            }
            Self::Timeout => word(
                "Tests took too long",
                "cross",
                Tone::Bad,
                "the required checks did not end in time",
            ),
            Self::Optimization => word(
                "Known to fail",
                "cross",
                Tone::Bad,
                "what is known already shows that it fails",
            ),
            Self::UpdatedAtMergeTime => word(
                "Changed while merging",
                "cross",
                Tone::Bad,
                "somebody pushed to it at the moment of merging",
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
                word("Removed on request", "minus", Tone::Quiet, "somebody took it out")
            }
            Self::Closed => {
                word("Pull request was closed", "minus", Tone::Quiet, "the pull request was closed")
            }
            Self::PushedTo => word(
                "Pull request was pushed to",
                "minus",
                Tone::Quiet,
                "new commits came, so what was tested is out of date",
            ),
            Self::BaseChanged => word(
                "Base branch changed",
                "minus",
                Tone::Quiet,
                "it wants to be merged into another branch now",
            ),
            Self::ConvertedToDraft => word(
                "Converted to a draft",
                "minus",
                Tone::Quiet,
                "its author marked it as unfinished",
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
                "what was missing did not come in time",
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
                "the queue put exactly the tested content on the target branch",
            ),
            Self::Manual => {
                word("Merged by hand", "merge", Tone::Quiet, "somebody merged it past the queue")
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
                "everything in it is on the target branch already, so there was nothing to merge",
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
                "the target branch was moved and does not contain it any more",
            ),
        }
    }
}
