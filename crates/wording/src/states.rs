//! Labels for the states of pull requests, queues, test runs and checks.

use signalbox_domain::queue::{
    CheckConclusion, CheckStatus, ManagedState, Outcome, PrState, QueueStateName, RunStatus,
};

use super::{Named, Tone, Word, word};

impl Named for PrState {
    fn named(&self) -> Word {
        match self {
            Self::NotReady => word(
                "Waiting to enter",
                "hourglass",
                Tone::Waiting,
                "it was submitted and is not ready to enter the line",
            ),
            Self::Pending => word(
                "Waiting to be tested",
                "clock",
                Tone::Waiting,
                "it is in the line, and its tests have not started",
            ),
            Self::Testing => word(
                "Testing",
                "play",
                Tone::Active,
                "it is being tested on top of the pull requests ahead of it",
            ),
            Self::TestsPassed => word(
                "Passed, waiting to merge",
                "half",
                Tone::Good,
                "its tests passed; it merges after the pull requests ahead of it",
            ),
            Self::Merged => word("Merged", "merge", Tone::Good, "the target branch contains it"),
            Self::Failed => {
                word("Failed", "cross", Tone::Bad, "it was removed because of a failure")
            }
            Self::Cancelled => word(
                "Cancelled",
                "minus",
                Tone::Quiet,
                "it was removed on request or because the pull request changed",
            ),
            Self::PendingFailure => word(
                "Pending failure",
                "warning",
                Tone::Warning,
                "its tests failed; other test runs show whether it is at fault",
            ),
        }
    }
}

impl Named for ManagedState {
    fn named(&self) -> Word {
        match self {
            Self::Manual => word(
                "Not managed by Terraform",
                "minus",
                Tone::Quiet,
                "Terraform has never changed the queue",
            ),
            Self::Terraform => word(
                "Managed by Terraform",
                "shield",
                Tone::Quiet,
                "its settings and state are the ones that Terraform left",
            ),
            Self::TerraformWithDrift => word(
                "Changed outside Terraform",
                "warning",
                Tone::Warning,
                "its settings or state were changed since Terraform last applied",
            ),
        }
    }
}

impl Named for QueueStateName {
    fn named(&self) -> Word {
        match self {
            Self::Running => {
                word("Running", "play", Tone::Active, "pull requests are tested and merged")
            }
            Self::Paused => word(
                "Paused",
                "pause",
                Tone::Warning,
                "no test run starts and no pull request merges",
            ),
            Self::Draining => word(
                "Draining",
                "drain",
                Tone::Warning,
                "pull requests in the line finish; new ones wait",
            ),
            Self::SwitchingModes => word(
                "Switching modes",
                "switch",
                Tone::Warning,
                "pull requests in the line finish in the old mode before the new one takes effect",
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
            Self::ActionRequired => {
                word("Action required", "warning", Tone::Warning, "the check needs a user to act")
            }
            Self::Cancelled => word("Cancelled", "minus", Tone::Quiet, "the check was stopped"),
            Self::Failure => word("Failed", "cross", Tone::Bad, "the check failed"),
            Self::Neutral => word(
                "Neutral",
                "half",
                Tone::Quiet,
                "the check neither passed nor failed; it counts as passed",
            ),
            Self::Success => word("Passed", "check", Tone::Good, "the check passed"),
            Self::Skipped => word(
                "Skipped",
                "minus",
                Tone::Quiet,
                "the check was not needed and counts as passed",
            ),
            Self::Stale => word("Stale", "clock", Tone::Quiet, "the host abandoned the check"),
            Self::TimedOut => word("Timed out", "cross", Tone::Bad, "the check timed out"),
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
                word("Failed", "cross", Tone::Bad, "a required check failed or timed out")
            }
            Self::Interrupted => word(
                "Interrupted",
                "switch",
                Tone::Quiet,
                "the test run was stopped because a pull request ahead changed",
            ),
            Self::Cancelled => word(
                "Cancelled",
                "minus",
                Tone::Quiet,
                "the pull request was removed during the test run",
            ),
        }
    }
}

impl Named for RunStatus {
    fn named(&self) -> Word {
        match self {
            Self::Building => {
                word("Building candidate", "clock", Tone::Active, "the candidate is being built")
            }
            Self::Testing => word("Testing", "play", Tone::Active, "the checks are running"),
            Self::Passed => word("Passed", "check", Tone::Good, "every required check passed"),
            Self::Failed { .. } => {
                word("Failed", "cross", Tone::Bad, "a required check failed or timed out")
            }
            Self::Cancelled { reason } => {
                word("Cancelled", "minus", Tone::Quiet, reason.named().sentence)
            }
        }
    }
}
