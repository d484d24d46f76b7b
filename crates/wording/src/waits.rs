//! Words for why somebody waits, and whose fault a failure is.

use signalbox_domain::queue::{Culprit, WaitReason};

use super::{Named, Tone, Word, word};

impl Named for WaitReason {
    fn named(&self) -> Word {
        match self {
            Self::Draft => {
                word("Draft", "minus", Tone::Waiting, "the pull request is marked as unfinished")
            }
            Self::BaseBranchDiffers => word(
                "Other base branch",
                "warning",
                Tone::Warning,
                "it wants to be merged into another branch",
            ),
            Self::MissingTargets => word(
                "Targets missing",
                "hourglass",
                Tone::Waiting,
                "its impacted targets were not reported for its current head",
            ),
            Self::HostMergeability { .. } => word(
                "Host says no",
                "warning",
                Tone::Warning,
                "the git host does not call it mergeable",
            ),
            Self::RequiredChecksUnknown => word(
                "Checks unknown",
                "hourglass",
                Tone::Waiting,
                "it is not known yet which checks are required",
            ),
            Self::SlotsFull { .. } => {
                word("Slots full", "clock", Tone::Waiting, "every slot for testing is taken")
            }
            Self::BatchFilling { .. } => word(
                "Batch is filling",
                "clock",
                Tone::Waiting,
                "more pull requests may join its batch",
            ),
            Self::BehindPrs { .. } => {
                word("Behind others", "clock", Tone::Waiting, "others ahead must be built first")
            }
            Self::BuildingCandidate => {
                word("Being built", "play", Tone::Active, "its candidate is being built")
            }
            Self::ChecksRunning { .. } => {
                word("Checks running", "play", Tone::Active, "its checks are running")
            }
            Self::ChecksSilent { .. } => word(
                "Checks silent",
                "warning",
                Tone::Warning,
                "nothing was heard of its required checks",
            ),
            Self::PredecessorTesting { .. } => {
                word("Others first", "clock", Tone::Waiting, "what is ahead is still being tested")
            }
            Self::SuccessorWindow { .. } => word(
                "Checking others",
                "warning",
                Tone::Warning,
                "later pull requests may still show that it is not at fault",
            ),
            Self::ConflictWithAhead { .. } => word(
                "Conflict ahead",
                "warning",
                Tone::Warning,
                "it conflicts with a pull request ahead",
            ),
            Self::BehindLanding { .. } => word(
                "Another merge first",
                "clock",
                Tone::Waiting,
                "another pull request is being put on the target branch",
            ),
            Self::Unexplained => word(
                "Unexplained",
                "warning",
                Tone::Bad,
                "nothing that Signalbox knows keeps it; this is a fault of Signalbox",
            ),
            Self::Landing => {
                word("Merging", "merge", Tone::Active, "it is being put on the target branch")
            }
            Self::QueuePaused { .. } => {
                word("Queue paused", "pause", Tone::Warning, "the queue is paused")
            }
            Self::QueueDraining => {
                word("Queue draining", "drain", Tone::Warning, "the queue lets nothing new in")
            }
            Self::QueueSwitchingModes => word(
                "Queue switching modes",
                "switch",
                Tone::Warning,
                "the queue changes its mode when its line is empty",
            ),
            Self::HostUnreachable { .. } => {
                word("Host unreachable", "warning", Tone::Bad, "the git host does not answer")
            }
            Self::HostAccessDenied { .. } => word(
                "Host denies access",
                "warning",
                Tone::Bad,
                "the git host does not let this server do what the queue needs",
            ),
            Self::HostCredentialRejected { .. } => word(
                "Credential rejected",
                "warning",
                Tone::Bad,
                "the git host does not accept this server's credential",
            ),
            Self::TargetBranchMissing => word(
                "Target branch missing",
                "warning",
                Tone::Bad,
                "the target branch does not exist",
            ),
            Self::TargetUnknown => word(
                "Reading the target",
                "clock",
                Tone::Waiting,
                "the head of the target branch is being read",
            ),
        }
    }
}

impl Named for Culprit {
    fn named(&self) -> Word {
        match self {
            Self::Itself => word(
                "The pull request itself",
                "cross",
                Tone::Bad,
                "no other change is known to be at fault",
            ),
            Self::Host => word("The git host", "warning", Tone::Warning, "the git host refused it"),
            Self::PullRequest(_) => word(
                "Another pull request",
                "warning",
                Tone::Warning,
                "a pull request that it was built on is at fault",
            ),
            Self::TargetBranch => word(
                "The target branch",
                "warning",
                Tone::Bad,
                "the target branch fails without it",
            ),
        }
    }
}
