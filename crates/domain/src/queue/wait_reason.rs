//! Why a live entry is not further: exactly one typed reason each, the same for API, pages,
//! command line and comments.

use crate::ids::PrNumber;
use crate::time::Timestamp;

/// Why a pull request waits. Lists of pull requests name at most 20, those nearest to the front.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
#[expect(
    missing_docs,
    reason = "the fields are named by what they hold; the sentence explains them"
)]
pub enum WaitReason {
    /// Its author marked it as unfinished.
    Draft,
    /// It wants to be merged into another branch than the queue's.
    BaseBranchDiffers,
    /// Its impacted targets were not reported for its current head.
    MissingTargets,
    /// The host does not call it mergeable.
    HostMergeability { detail: String },
    /// The statuses that must succeed are not known yet.
    RequiredChecksUnknown,
    /// Every slot is taken.
    SlotsFull { used: u32, limit: u32 },
    /// Its batch is not full yet.
    BatchFilling { have: u32, target: u32, until: Timestamp },
    /// Others are ahead and have no candidate to build on yet.
    BehindPrs { prs: Vec<PrNumber> },
    /// Its candidate is being built.
    BuildingCandidate,
    /// Its checks are running.
    ChecksRunning { done: u32, of: u32 },
    /// Nothing was heard of these required statuses since the candidate was pushed.
    ChecksSilent { names: Vec<String>, since: Timestamp },
    /// Its run failed, or passed, and what is ahead is still being tested.
    PredecessorTesting { prs: Vec<PrNumber> },
    /// Its run failed; successors may still absolve it.
    SuccessorWindow { depth: u32, until: Option<Timestamp> },
    /// It conflicts with one ahead, and waits until that has left or landed.
    ConflictWithAhead { pr: PrNumber },
    /// It is being put on the target branch.
    Landing,
    /// The queue is paused.
    QueuePaused { by: String, reason: Option<String> },
    /// The queue lets nothing new in.
    QueueDraining,
    /// The queue changes its mode when its line is empty.
    QueueSwitchingModes,
    /// The git host does not answer, or it is unwell; `detail` says what was seen.
    HostUnreachable { since: Timestamp, detail: String },
    /// The git host does not let this installation do what the queue needs.
    HostAccessDenied { since: Timestamp, detail: String },
    /// The git host does not accept this installation's credential.
    HostCredentialRejected { since: Timestamp, detail: String },
    /// The target branch does not exist.
    TargetBranchMissing,
    /// The target branch's head has not been read yet.
    TargetUnknown,
}

impl WaitReason {
    /// A sentence for people.
    pub fn sentence(&self) -> String {
        let list = |prs: &[PrNumber]| {
            let named: Vec<String> = prs.iter().take(5).map(|pr| format!("#{pr}")).collect();
            let more = prs.len().saturating_sub(named.len());
            let named = named.join(", ");
            if more == 0 { named } else { format!("{named} and {more} more") }
        };
        match self {
            Self::Draft => "the pull request is a draft".into(),
            Self::BaseBranchDiffers => {
                "the pull request's base is not the branch of this queue".into()
            }
            Self::MissingTargets => {
                "its impacted targets have not been reported for its current head".into()
            }
            Self::HostMergeability { detail } => format!("the host says: {detail}"),
            Self::RequiredChecksUnknown => "its required statuses are not known yet".into(),
            Self::SlotsFull { used, limit } => {
                format!("all test slots are taken ({used} of {limit})")
            }
            Self::BatchFilling { have, target, until } => {
                format!("its batch is filling: {have} of {target}, at the latest until {until}")
            }
            Self::BehindPrs { prs } => format!("{} ahead must be built first", list(prs)),
            Self::BuildingCandidate => "its candidate is being built".into(),
            Self::ChecksRunning { done, of } => format!("{done} of {of} required checks are done"),
            Self::ChecksSilent { names, since } => {
                let named: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                format!(
                    "no check named {} has started since the push at {since}; \
                     is it configured for the test branches?",
                    named.join(" or ")
                )
            }
            Self::PredecessorTesting { prs } => format!("waits for {} ahead", list(prs)),
            Self::SuccessorWindow { depth, .. } => format!(
                "its tests failed; up to {depth} levels of later pull requests may still absolve it"
            ),
            Self::ConflictWithAhead { pr } => {
                format!("conflicts with #{pr} ahead and waits until that has left or landed")
            }
            Self::Landing => "is being put on the target branch".into(),
            Self::QueuePaused { by, reason: Some(reason) } => {
                format!("the queue was paused by {by}: {reason}")
            }
            Self::QueuePaused { by, reason: None } => format!("the queue was paused by {by}"),
            Self::QueueDraining => "the queue is draining and lets nothing new in".into(),
            Self::QueueSwitchingModes => {
                "the queue is switching modes and lets nothing new in until its line is empty"
                    .into()
            }
            Self::HostUnreachable { since, detail } if detail.is_empty() => {
                format!("the git host has not answered since {since}")
            }
            Self::HostUnreachable { since, detail } => {
                format!("the git host has not been available since {since}: {detail}")
            }
            Self::HostAccessDenied { since, detail } => {
                format!("the git host has denied access since {since}: {detail}")
            }
            Self::HostCredentialRejected { since, detail } => {
                format!("the git host has rejected the server's credential since {since}: {detail}")
            }
            Self::TargetBranchMissing => "the target branch does not exist on the host".into(),
            Self::TargetUnknown => "the target branch's head is being read".into(),
        }
    }
}
