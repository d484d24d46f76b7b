//! Words for states of pull requests, queues, runs and checks.

use signalbox_domain::queue::{
    CheckConclusion, CheckStatus, Outcome, PrState, QueueStateName, RunStatus,
};

use super::{Named, Tone, Word, word};

impl Named for PrState {
    fn named(&self) -> Word {
        match self {
            Self::NotReady => word(
                "Waiting to enter",
                "hourglass",
                Tone::Waiting,
                "it was submitted and something is missing before it may enter the line",
            ),
            Self::Pending => word(
                "Waiting for a slot",
                "clock",
                Tone::Waiting,
                "it is in the line and waits for its turn",
            ),
            Self::Testing => word(
                "Testing",
                "play",
                Tone::Active,
                "it is tested together with what is ahead of it",
            ),
            Self::TestsPassed => word(
                "Passed, waiting to merge",
                "half",
                Tone::Good,
                "its tests passed and it waits for what is ahead to merge",
            ),
            Self::Merged => word("Merged", "merge", Tone::Good, "it is on the target branch"),
            Self::Failed => {
                word("Failed", "cross", Tone::Bad, "it was taken out because of a failure")
            }
            Self::Cancelled => word(
                "Cancelled",
                "minus",
                Tone::Quiet,
                "it was taken out on request or because the pull request changed",
            ),
            Self::PendingFailure => word(
                "Failed once, checking others",
                "warning",
                Tone::Warning,
                "its tests failed, and others show whether it is at fault",
            ),
        }
    }
}

impl Named for QueueStateName {
    fn named(&self) -> Word {
        match self {
            Self::Running => word("Running", "play", Tone::Active, "everything goes on"),
            Self::Paused => {
                word("Paused", "pause", Tone::Warning, "nothing starts and nothing merges")
            }
            Self::Draining => word(
                "Draining",
                "drain",
                Tone::Warning,
                "what is in the line is finished and nothing new enters",
            ),
            Self::SwitchingModes => word(
                "Switching modes",
                "switch",
                Tone::Warning,
                "the line empties in the old mode before the new one begins",
            ),
        }
    }
}

impl Named for CheckStatus {
    fn named(&self) -> Word {
        match self {
            Self::Queued => word("Queued", "clock", Tone::Waiting, "the check waits for a machine"),
            Self::InProgress => word("Running", "play", Tone::Active, "the check is running"),
            Self::Completed => word("Done", "half", Tone::Quiet, "the check has ended"),
        }
    }
}

impl Named for CheckConclusion {
    fn named(&self) -> Word {
        match self {
            Self::ActionRequired => word(
                "Action required",
                "warning",
                Tone::Warning,
                "the check asks somebody to do something",
            ),
            Self::Cancelled => word("Cancelled", "minus", Tone::Quiet, "the check was stopped"),
            Self::Failure => word("Failed", "cross", Tone::Bad, "the check failed"),
            Self::Neutral => word(
                "Neutral",
                "half",
                Tone::Quiet,
                "the check has no opinion and counts as passed",
            ),
            Self::Success => word("Passed", "check", Tone::Good, "the check passed"),
            Self::Skipped => word(
                "Skipped",
                "minus",
                Tone::Quiet,
                "the check was not needed and counts as passed",
            ),
            Self::Stale => word("Stale", "clock", Tone::Quiet, "the host gave up on the check"),
            Self::TimedOut => word("Timed out", "cross", Tone::Bad, "the check took too long"),
        }
    }
}

impl Named for Outcome {
    fn named(&self) -> Word {
        match self {
            Self::Passed => {
                word("Passed", "check", Tone::Good, "the pull request counts as tested")
            }
            Self::Failed => {
                word("Failed", "cross", Tone::Bad, "a required check failed or took too long")
            }
            Self::Interrupted => word(
                "Interrupted",
                "switch",
                Tone::Quiet,
                "the test was given up because something ahead changed",
            ),
            Self::Cancelled => {
                word("Cancelled", "minus", Tone::Quiet, "the pull request was taken out meanwhile")
            }
        }
    }
}

impl Named for RunStatus {
    fn named(&self) -> Word {
        match self {
            Self::Building => {
                word("Being built", "clock", Tone::Active, "the candidate is being built")
            }
            Self::Testing => word("Testing", "play", Tone::Active, "the checks are running"),
            Self::Passed => word("Passed", "check", Tone::Good, "every required check passed"),
            Self::Failed { .. } => {
                word("Failed", "cross", Tone::Bad, "a required check failed or took too long")
            }
            Self::Cancelled { reason } => {
                word("Cancelled", "minus", Tone::Quiet, reason.named().sentence)
            }
        }
    }
}
