//! Why an entry waits, as clients see it.

use serde::Serialize;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::WaitReason;
use utoipa::ToSchema;

/// Why an entry is not further: the kind, and its particulars.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[schema(example = json!({"kind": "slots_full", "used": 5, "limit": 5}))]
pub(crate) enum WaitReasonReply {
    /// Its author marked it as unfinished.
    Draft,
    /// It wants to be merged into another branch.
    BaseBranchDiffers,
    /// Its impacted targets were not reported for its current head.
    MissingTargets,
    /// The host does not call it mergeable.
    HostMergeability {
        /// The host's words.
        detail: String,
    },
    /// The required statuses are not known yet.
    RequiredChecksUnknown,
    /// Every test slot is taken.
    SlotsFull {
        used: u32,
        limit: u32,
        /// How many pull requests ahead wait for a slot too.
        ahead: u32,
    },
    /// Its batch is not full yet.
    BatchFilling { have: u32, target: u32, until: String },
    /// These are ahead and must be built first.
    BehindPrs {
        prs: Vec<u32>,
        /// How many there are; at most 20 are named.
        ahead: u32,
    },
    /// Its candidate is being built.
    BuildingCandidate,
    /// Its checks are running.
    ChecksRunning { done: u32, of: u32 },
    /// Nothing was heard of these required statuses since the candidate was pushed.
    ChecksSilent { names: Vec<String>, since: String },
    /// These are ahead and still being tested.
    PredecessorTesting { prs: Vec<u32> },
    /// Its run failed; later pull requests may still absolve it.
    SuccessorWindow { depth: u32, until: Option<String> },
    /// It conflicts with this one ahead.
    ConflictWithAhead { pr: u32 },
    /// These are being put on the target branch; it is next.
    BehindLanding { prs: Vec<u32> },
    /// It is being put on the target branch.
    Landing,
    /// Nothing that the server knows keeps it: a fault of the server, which is counted and reported.
    Unexplained,
    /// The queue is paused.
    QueuePaused { by: String, reason: Option<String> },
    /// The queue lets nothing new in.
    QueueDraining,
    /// The queue changes its mode when its line is empty.
    QueueSwitchingModes,
    /// The git host does not answer.
    HostUnreachable { since: String, detail: String },
    /// The git host does not let this installation do what the queue needs.
    HostAccessDenied { since: String, detail: String },
    /// The git host does not accept this installation's credential.
    HostCredentialRejected { since: String, detail: String },
    /// The target branch does not exist.
    TargetBranchMissing,
    /// The target branch is being read.
    TargetUnknown,
}

impl From<&WaitReason> for WaitReasonReply {
    fn from(reason: &WaitReason) -> Self {
        let numbers = |prs: &[PrNumber]| prs.iter().map(|pr| pr.0).collect();
        match reason {
            WaitReason::Draft => Self::Draft,
            WaitReason::BaseBranchDiffers => Self::BaseBranchDiffers,
            WaitReason::MissingTargets => Self::MissingTargets,
            WaitReason::HostMergeability { detail } => {
                Self::HostMergeability { detail: detail.clone() }
            }
            WaitReason::RequiredChecksUnknown => Self::RequiredChecksUnknown,
            WaitReason::SlotsFull { used, limit, ahead } => {
                Self::SlotsFull { used: *used, limit: *limit, ahead: *ahead }
            }
            WaitReason::BatchFilling { have, target, until } => {
                Self::BatchFilling { have: *have, target: *target, until: until.to_string() }
            }
            WaitReason::BehindPrs { prs, ahead } => {
                Self::BehindPrs { prs: numbers(prs), ahead: *ahead }
            }
            WaitReason::BuildingCandidate => Self::BuildingCandidate,
            WaitReason::ChecksRunning { done, of } => Self::ChecksRunning { done: *done, of: *of },
            WaitReason::ChecksSilent { names, since } => {
                Self::ChecksSilent { names: names.clone(), since: since.to_string() }
            }
            WaitReason::PredecessorTesting { prs } => {
                Self::PredecessorTesting { prs: numbers(prs) }
            }
            WaitReason::SuccessorWindow { depth, until } => Self::SuccessorWindow {
                depth: *depth,
                until: until.as_ref().map(ToString::to_string),
            },
            WaitReason::ConflictWithAhead { pr } => Self::ConflictWithAhead { pr: pr.0 },
            WaitReason::BehindLanding { prs } => Self::BehindLanding { prs: numbers(prs) },
            WaitReason::Landing => Self::Landing,
            WaitReason::Unexplained => Self::Unexplained,
            WaitReason::QueuePaused { by, reason } => {
                Self::QueuePaused { by: by.clone(), reason: reason.clone() }
            }
            WaitReason::QueueDraining => Self::QueueDraining,
            WaitReason::QueueSwitchingModes => Self::QueueSwitchingModes,
            WaitReason::HostUnreachable { since, detail } => {
                Self::HostUnreachable { since: since.to_string(), detail: detail.clone() }
            }
            WaitReason::HostAccessDenied { since, detail } => {
                Self::HostAccessDenied { since: since.to_string(), detail: detail.clone() }
            }
            WaitReason::HostCredentialRejected { since, detail } => {
                Self::HostCredentialRejected { since: since.to_string(), detail: detail.clone() }
            }
            WaitReason::TargetBranchMissing => Self::TargetBranchMissing,
            WaitReason::TargetUnknown => Self::TargetUnknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use signalbox_domain::time::Timestamp;

    use super::*;

    #[test]
    fn particulars_are_plain_numbers_texts_and_times() {
        let at = Timestamp::from_unix_seconds(1_767_225_600);
        let time = "2026-01-01T00:00:00.000Z";
        let prs = vec![PrNumber(3), PrNumber(5)];
        for (reason, expected) in [
            (WaitReason::Draft, json!({"kind": "draft"})),
            (
                WaitReason::BatchFilling { have: 2, target: 4, until: at },
                json!({"kind": "batch_filling", "have": 2, "target": 4, "until": time}),
            ),
            (
                WaitReason::BehindPrs { prs: prs.clone(), ahead: 2 },
                json!({"kind": "behind_prs", "prs": [3, 5], "ahead": 2}),
            ),
            (
                WaitReason::PredecessorTesting { prs },
                json!({"kind": "predecessor_testing", "prs": [3, 5]}),
            ),
            (
                WaitReason::SuccessorWindow { depth: 2, until: Some(at) },
                json!({"kind": "successor_window", "depth": 2, "until": time}),
            ),
            (
                WaitReason::ChecksSilent { names: vec!["test".into()], since: at },
                json!({"kind": "checks_silent", "names": ["test"], "since": time}),
            ),
            (
                WaitReason::ConflictWithAhead { pr: PrNumber(3) },
                json!({"kind": "conflict_with_ahead", "pr": 3}),
            ),
            (
                WaitReason::HostUnreachable { since: at, detail: "no answer".into() },
                json!({"kind": "host_unreachable", "since": time, "detail": "no answer"}),
            ),
            (
                WaitReason::HostAccessDenied { since: at, detail: "archived".into() },
                json!({"kind": "host_access_denied", "since": time, "detail": "archived"}),
            ),
        ] {
            let reply = serde_json::to_value(WaitReasonReply::from(&reason)).expect("JSON");
            assert_eq!(reply, expected);
        }
    }
}
