//! What will happen next to somebody who waits, or what they can do about it.

use signalbox_domain::queue::{Entry, Exit, WaitReason};

use crate::text::span;
use signalbox_domain::time::Timestamp;

/// What happens next.
pub(crate) fn after(wait: &WaitReason, now: Timestamp) -> String {
    match wait {
        WaitReason::Draft => "Mark the pull request as ready; it then enters the line by itself.".into(),
        WaitReason::BaseBranchDiffers => {
            "Change the base of the pull request to the branch of this queue, or submit it to the \
             queue of its own base."
                .into()
        }
        WaitReason::MissingTargets => {
            "Report its impacted targets from CI; it then enters the line by itself.".into()
        }
        WaitReason::HostMergeability { .. } => {
            "Resolve what the host names; it then enters the line by itself.".into()
        }
        WaitReason::RequiredChecksUnknown => {
            "The queue is reading which checks are required; nothing to do.".into()
        }
        WaitReason::SlotsFull { ahead: 0, .. } => "Starts when a running test finishes.".into(),
        WaitReason::SlotsFull { ahead, .. } => {
            format!("Starts when a slot is free and the {ahead} ahead of it have started.")
        }
        WaitReason::BatchFilling { until, .. } => {
            format!("Its batch starts when it is full, at the latest in {}.", span(until.since(now)))
        }
        WaitReason::BehindPrs { .. } => "Starts when the pull requests ahead have been built.".into(),
        WaitReason::BehindLanding { .. } => "Continues when that merge is done.".into(),
        WaitReason::Unexplained => {
            "The server lets the queue advance again by itself; please report it with the server's log.".into()
        }
        WaitReason::BuildingCandidate => "Its tests start when the candidate is pushed.".into(),
        WaitReason::ChecksRunning { .. } => {
            "When all required checks have passed it merges, after what is ahead of it.".into()
        }
        WaitReason::ChecksSilent { .. } => {
            "Look at the configuration of CI: these checks must run for the branches of the queue. \
             If they stay silent its tests fail by the time limit."
                .into()
        }
        WaitReason::PredecessorTesting { .. } => "It merges right after those ahead of it.".into(),
        WaitReason::SuccessorWindow { until, .. } => until.map_or_else(
            || "If a later pull request that contains it passes, it counts as passed; else it fails.".into(),
            |until| {
                format!(
                    "If a later pull request that contains it passes within {}, it counts as passed; else it fails.",
                    span(until.since(now))
                )
            },
        ),
        WaitReason::ConflictWithAhead { .. } => {
            "If the other one leaves it goes on; if that one merges, this one has to be rebased.".into()
        }
        WaitReason::Landing => "It is on the target branch in a moment.".into(),
        WaitReason::QueuePaused { .. } => "It goes on when somebody resumes the queue.".into(),
        WaitReason::QueueDraining => "It enters when somebody sets the queue to running.".into(),
        WaitReason::QueueSwitchingModes => "It enters as soon as the line is empty.".into(),
        WaitReason::HostUnreachable { .. } => {
            "The queue tries again by itself; whoever runs the server can see more in its log.".into()
        }
        WaitReason::HostAccessDenied { .. } => {
            "Continues when an operator restores the server's access; `signalbox doctor` says what is missing.".into()
        }
        WaitReason::HostCredentialRejected { .. } => {
            "Continues when an operator replaces the server's credential for this host.".into()
        }
        WaitReason::TargetBranchMissing => "Create the branch on the host, or delete this queue.".into(),
        WaitReason::TargetUnknown => "It goes on as soon as the host has answered.".into(),
    }
}

/// What can be done once it has left.
pub(crate) fn afterwards(entry: &Entry, exit: &Exit) -> &'static str {
    match exit {
        Exit::Merged { .. } if entry.off_target_since.is_some() => {
            "To land it again, push a new commit to a pull request and submit that."
        }
        Exit::Merged { .. } => "There is nothing left to do.",
        Exit::Failed { .. } => "Fix what failed, push, and submit it again.",
        Exit::Cancelled { .. } => "Submit it again when it should be merged.",
    }
}
