//! Why a live entry is not further: exactly one typed reason each, the same for API, pages, command
//! line and comments.

use crate::ids::PrNumber;
use crate::time::Timestamp;

use super::lanes::absolver;
use super::{Entry, Queue, QueueState, RunStatus};

/// A particular of a reason, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Particular {
    /// A number of something.
    Count(u32),
    /// A text, such as the host's words.
    Text(String),
    /// A text that may be missing.
    OptionalText(Option<String>),
    /// Names of statuses.
    Names(Vec<String>),
    /// A pull request.
    PullRequest(PrNumber),
    /// Pull requests, at most 20, those nearest to the front.
    PullRequests(Vec<PrNumber>),
    /// A time.
    Time(Timestamp),
}

/// A type that particulars have.
trait Datum {
    /// A value for descriptions and tables.
    fn sample() -> Self;

    fn particular(&self) -> Particular;
}

macro_rules! data {
    ($($type:ty, $kind:ident, $sample:expr;)+) => {
        $(impl Datum for $type {
            fn sample() -> Self {
                $sample
            }

            fn particular(&self) -> Particular {
                Particular::$kind(self.clone())
            }
        })+
    };
}

data! {
    u32, Count, 0;
    String, Text, Self::new();
    Option<String>, OptionalText, None;
    Vec<String>, Names, Self::new();
    PrNumber, PullRequest, Self(1);
    Vec<PrNumber>, PullRequests, vec![PrNumber(1)];
    Timestamp, Time, Self::from_unix_seconds(0);
}

/// Each reason: its documentation, its variant, its kind on the wire, and its particulars.
macro_rules! wait_reasons {
    ($(
        #[doc = $doc:literal]
        $variant:ident = $kind:literal $({ $($field:ident: $type:ty),+ })?;
    )+) => {
        /// Why a pull request waits. Lists of pull requests name at most 20, those nearest to the
        /// front.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the fields are named by what they hold")]
        pub enum WaitReason { $(#[doc = $doc] $variant $({ $($field: $type),+ })?,)+ }

        impl WaitReason {
            /// The kind, lower case: `slots_full`.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $kind,)+ }
            }

            /// The particulars by name, in the order of declaration.
            pub fn particulars(&self) -> Vec<(&'static str, Particular)> {
                match self {
                    $(Self::$variant { $($($field),+)? } => {
                        vec![$($((stringify!($field), $field.particular())),+)?]
                    })+
                }
            }

            /// One of each kind with its documentation, for descriptions and tables.
            pub fn samples() -> Vec<(&'static str, Self)> {
                vec![$(($doc, Self::$variant { $($($field: Datum::sample()),+)? }),)+]
            }
        }
    };
}

wait_reasons! {
    /// Its author marked it as unfinished.
    Draft = "draft";
    /// It wants to be merged into another branch than the queue's.
    BaseBranchDiffers = "base_branch_differs";
    /// Its impacted targets were not reported for its current head.
    MissingTargets = "missing_targets";
    /// The host does not call it mergeable; `detail` has its words.
    HostMergeability = "host_mergeability" { detail: String };
    /// The statuses that must succeed are not known yet.
    RequiredChecksUnknown = "required_checks_unknown";
    /// Every slot is taken; `ahead` others in front of it wait for one too.
    SlotsFull = "slots_full" { used: u32, limit: u32, ahead: u32 };
    /// Its batch is not full yet.
    BatchFilling = "batch_filling" { have: u32, target: u32, until: Timestamp };
    /// `ahead` others are in front of it and have no candidate to build on yet.
    BehindPrs = "behind_prs" { prs: Vec<PrNumber>, ahead: u32 };
    /// Its candidate is being built.
    BuildingCandidate = "building_candidate";
    /// Its checks are running.
    ChecksRunning = "checks_running" { done: u32, of: u32 };
    /// Nothing was heard of these required statuses since the candidate was pushed.
    ChecksSilent = "checks_silent" { names: Vec<String>, since: Timestamp };
    /// Its run failed, or passed, and what is ahead is still being tested.
    PredecessorTesting = "predecessor_testing" { prs: Vec<PrNumber> };
    /// Its run failed; successors may still absolve it.
    SuccessorWindow = "successor_window" { depth: u32 };
    /// It conflicts with one ahead, and waits until that has left or landed.
    ConflictWithAhead = "conflict_with_ahead" { pr: PrNumber };
    /// These are being put on the target branch, and one landing follows another.
    BehindLanding = "behind_landing" { prs: Vec<PrNumber> };
    /// It is being put on the target branch.
    Landing = "landing";
    /// Nothing in the queue keeps it: a breach of Q10, and a fault of this program.
    Unexplained = "unexplained";
    /// The queue is paused.
    QueuePaused = "queue_paused" { by: String, reason: Option<String> };
    /// The queue lets nothing new in.
    QueueDraining = "queue_draining";
    /// The queue changes its mode when its line is empty.
    QueueSwitchingModes = "queue_switching_modes";
    /// The git host does not answer, or it is unwell; `detail` says what was seen.
    HostUnreachable = "host_unreachable" { since: Timestamp, detail: String };
    /// The git host does not let this installation do what the queue needs.
    HostAccessDenied = "host_access_denied" { since: Timestamp, detail: String };
    /// The git host does not accept this installation's credential.
    HostCredentialRejected = "host_credential_rejected" { since: Timestamp, detail: String };
    /// The target branch does not exist.
    TargetBranchMissing = "target_branch_missing";
    /// The target branch's head has not been read yet.
    TargetUnknown = "target_unknown";
}

impl WaitReason {
    /// Whether it is true of an entry of a queue, looked at alone.
    pub(super) fn holds(&self, queue: &Queue, entry: &Entry) -> bool {
        let header = &queue.header;
        let run = entry.state.run().and_then(|run| queue.run(run));
        let live = |prs: &[PrNumber]| {
            !prs.is_empty() && prs.iter().all(|it| *it != entry.pr && queue.entry_of(*it).is_some())
        };
        match self {
            Self::Draft
            | Self::BaseBranchDiffers
            | Self::MissingTargets
            | Self::HostMergeability { .. } => {
                !entry.readiness(&header.branch, queue.mode()).is_ready()
            }
            Self::SlotsFull { used, .. } => *used > 0,
            Self::BatchFilling { until, .. } => header.batch_due.is_some_and(|due| due <= *until),
            Self::RequiredChecksUnknown
            | Self::BuildingCandidate
            | Self::ChecksRunning { .. }
            | Self::ChecksSilent { .. } => run.is_some_and(|run| run.status.is_running()),
            Self::BehindPrs { prs, .. } | Self::PredecessorTesting { prs } => live(prs),
            Self::ConflictWithAhead { pr } => live(&[*pr]),
            Self::SuccessorWindow { .. } => run.is_some_and(|run| absolver(queue, run).is_some()),
            Self::BehindLanding { .. } | Self::Landing => {
                let landing = header.landing.as_ref().and_then(|landing| queue.run(landing.run));
                landing.is_some_and(|run| run.status == RunStatus::Passed)
            }
            Self::QueuePaused { .. } => matches!(header.state, QueueState::Paused { .. }),
            Self::QueueDraining | Self::QueueSwitchingModes => !header.state.lets_in(),
            Self::HostUnreachable { .. }
            | Self::HostAccessDenied { .. }
            | Self::HostCredentialRejected { .. } => header.host.unreachable_since.is_some(),
            Self::TargetBranchMissing => header.target.missing,
            Self::TargetUnknown => header.target.head.is_none(),
            Self::Unexplained => false,
        }
    }
}
