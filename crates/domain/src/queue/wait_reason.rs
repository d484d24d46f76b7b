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
    /// Every slot is taken; `ahead` others in front of it wait for one too.
    SlotsFull { used: u32, limit: u32, ahead: u32 },
    /// Its batch is not full yet.
    BatchFilling { have: u32, target: u32, until: Timestamp },
    /// `ahead` others are in front of it and have no candidate to build on yet.
    BehindPrs { prs: Vec<PrNumber>, ahead: u32 },
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
    /// These are being put on the target branch, and one landing follows another.
    BehindLanding { prs: Vec<PrNumber> },
    /// It is being put on the target branch.
    Landing,
    /// Nothing in the queue keeps it: a breach of Q10, and a fault of this program.
    Unexplained,
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
        let list = |prs: &[PrNumber], count: u32| {
            let named: Vec<String> = prs.iter().take(5).map(|pr| format!("#{pr}")).collect();
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let more = count.max(prs.len()).saturating_sub(named.len());
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
            Self::SlotsFull { used, limit, ahead: 0 } => {
                format!("all test slots are taken ({used} of {limit})")
            }
            Self::SlotsFull { used, limit, ahead } => {
                let (others, wait) = if *ahead == 1 {
                    ("1 pull request ahead of it".to_owned(), "waits")
                } else {
                    (format!("{ahead} pull requests ahead of it"), "wait")
                };
                format!("all test slots are taken ({used} of {limit}) and {others} {wait} for one")
            }
            Self::BatchFilling { have, target, until } => {
                format!("its batch is filling: {have} of {target}, at the latest until {until}")
            }
            Self::BehindPrs { prs, ahead } => {
                format!("{} ahead must be built first", list(prs, *ahead))
            }
            Self::BehindLanding { prs } => {
                let count = u32::try_from(prs.len()).unwrap_or(u32::MAX);
                format!("{} must be on the target branch first", list(prs, count))
            }
            Self::Unexplained => {
                "nothing that Signalbox knows keeps it; this is a fault of Signalbox".into()
            }
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
            Self::PredecessorTesting { prs } => format!("waits for {} ahead", list(prs, 0)),
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
