//! Wait reasons: exactly one typed reason for each live entry, shared by API, pages, command line
//! and comments.

use crate::ids::PrNumber;
use crate::time::Timestamp;

use super::lanes::absolver;
use super::{Entry, Queue, QueueState, RunStatus, dependencies, frozen, quota, red, share, window};

/// A detail of a wait reason, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Particular {
    /// A count.
    Count(u32),
    /// A text, such as the host's message.
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
    /// A time that may be absent.
    OptionalTime(Option<Timestamp>),
}

/// A type of a detail.
trait Datum {
    /// A sample value for documentation.
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
    Option<Timestamp>, OptionalTime, None;
}

/// One row per reason: the documentation, the variant, the kind in the API, and the details.
macro_rules! wait_reasons {
    ($(
        #[doc = $doc:literal]
        $variant:ident = $kind:literal $({ $($field:ident: $type:ty),+ })?;
    )+) => {
        /// Why a pull request waits. Lists of pull requests name at most 20, those nearest to the
        /// front; a cycle names all.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the fields are named by what they hold")]
        pub enum WaitReason { $(#[doc = $doc] $variant $({ $($field: $type),+ })?,)+ }

        impl WaitReason {
            /// The kind, lower case: `slots_full`.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $kind,)+ }
            }

            /// The details by name, in the order of declaration.
            pub fn particulars(&self) -> Vec<(&'static str, Particular)> {
                match self {
                    $(Self::$variant { $($($field),+)? } => {
                        vec![$($((stringify!($field), $field.particular())),+)?]
                    })+
                }
            }

            /// A sample of each kind with its documentation.
            pub fn samples() -> Vec<(&'static str, Self)> {
                vec![$(($doc, Self::$variant { $($($field: Datum::sample()),+)? }),)+]
            }
        }
    };
}

wait_reasons! {
    /// It is a draft.
    Draft = "draft";
    /// Its base branch is not the queue's branch.
    BaseBranchDiffers = "base_branch_differs";
    /// No impacted targets have been reported for its current head.
    MissingTargets = "missing_targets";
    /// Its impacted targets are being computed from the paths that it changes.
    ComputingTargets = "computing_targets";
    /// The host does not report it as mergeable; `detail` is the host's reason.
    HostMergeability = "host_mergeability" { detail: String };
    /// These pull requests, which its description names as dependencies, have not merged yet.
    Dependencies = "dependencies" { on: Vec<String> };
    /// These dependencies were closed without a merge.
    DependencyClosed = "dependency_closed" { on: Vec<String> };
    /// Its description names these dependencies, and the server cannot find them.
    DependencyUnknown = "dependency_unknown" { on: Vec<String> };
    /// These pull requests depend on one another in this order, the last one on the first.
    DependencyCycle = "dependency_cycle" { prs: Vec<PrNumber> };
    /// The required statuses are not known yet.
    RequiredChecksUnknown = "required_checks_unknown";
    /// Every test slot is taken; `ahead` other pull requests ahead of it wait for one too.
    SlotsFull = "slots_full" { used: u32, limit: u32, ahead: u32 };
    /// Failures have reduced the test slots from `limit` to `window`, and all of them are taken.
    WindowClosed = "window_closed" { used: u32, window: u32, limit: u32, ahead: u32 };
    /// `used` test runs need `target`, an impacted target or a pattern, and at most `limit` may.
    TargetFull = "target_full" { target: String, used: u32, limit: u32 };
    /// Its batch is not full yet.
    BatchFilling = "batch_filling" { have: u32, target: u32, until: Timestamp };
    /// `ahead` pull requests ahead of it have no candidate to build on yet.
    BehindPrs = "behind_prs" { prs: Vec<PrNumber>, ahead: u32 };
    /// Its candidate is being built.
    BuildingCandidate = "building_candidate";
    /// Its checks are running.
    ChecksRunning = "checks_running" { done: u32, of: u32 };
    /// CI has queued these required checks since the candidate was pushed; none has started.
    ChecksQueued = "checks_queued" { names: Vec<String>, since: Timestamp };
    /// Failed checks run again on the same candidate, with the evidence for the class of the failure.
    Retrying = "retrying" { class: String, attempt: u32, of: u32, evidence: Vec<String> };
    /// These checks failed, and their test reports are expected.
    AwaitingReports = "awaiting_reports" { names: Vec<String>, until: Timestamp };
    /// These required statuses have not reported since the candidate was pushed.
    ChecksSilent = "checks_silent" { names: Vec<String>, since: Timestamp };
    /// These tests fail on the target branch itself; no test run starts until it moves.
    TargetRed = "target_red" { tests: Vec<String>, since: Timestamp, until: Timestamp };
    /// Its run has ended, and pull requests ahead are still being tested.
    PredecessorTesting = "predecessor_testing" { prs: Vec<PrNumber> };
    /// A later run that contains it has passed, but these pull requests in that run have not.
    SuccessorTesting = "successor_testing" { prs: Vec<PrNumber> };
    /// Its part of a failed batch has passed; the bisection has not decided on these pull requests.
    BatchBisected = "batch_bisected" { prs: Vec<PrNumber> };
    /// Its run failed; later runs may still show that it is not at fault.
    SuccessorWindow = "successor_window" { depth: u32 };
    /// It conflicts with a pull request ahead and waits until that one leaves or lands.
    ConflictWithAhead = "conflict_with_ahead" { pr: PrNumber };
    /// These pull requests are landing, and only one landing runs at a time.
    BehindLanding = "behind_landing" { prs: Vec<PrNumber> };
    /// It is landing on the target branch.
    Landing = "landing";
    /// Nothing in the queue explains the wait: a violation of Q10 and a bug in Signalbox.
    Unexplained = "unexplained";
    /// Its author or agent has `limit` or more pull requests in the line; `prs` are the first of these.
    AuthorLimit = "author_limit" { author: String, limit: u32, prs: Vec<PrNumber> };
    /// Its author or agent has used up the quota `of`, a setting; the next one may enter at `until`.
    Quota = "quota" { author: String, of: String, limit: u32, until: Timestamp };
    /// A freeze keeps it from merging or being tested; it ends at `until`, if it has an end.
    Frozen = "frozen" { until: Option<Timestamp>, reason: Option<String> };
    /// The queue is paused.
    QueuePaused = "queue_paused" { by: String, reason: Option<String> };
    /// The queue is draining and admits no new pull request.
    QueueDraining = "queue_draining";
    /// The queue is switching modes and admits no new pull request until its line is empty.
    QueueSwitchingModes = "queue_switching_modes";
    /// The git host does not answer or fails; `detail` is the last error.
    HostUnreachable = "host_unreachable" { since: Timestamp, detail: String };
    /// The git host denies this installation a permission that the queue needs.
    HostAccessDenied = "host_access_denied" { since: Timestamp, detail: String };
    /// The git host rejects this installation's credential.
    HostCredentialRejected = "host_credential_rejected" { since: Timestamp, detail: String };
    /// The target branch does not exist.
    TargetBranchMissing = "target_branch_missing";
    /// The target branch's head has not been read yet.
    TargetUnknown = "target_unknown";
}

impl WaitReason {
    /// Whether the reason holds for an entry, ignoring other entries.
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
            | Self::ComputingTargets
            | Self::Dependencies { .. }
            | Self::DependencyClosed { .. }
            | Self::DependencyUnknown { .. }
            | Self::HostMergeability { .. } => !entry.readiness(header).is_ready(),
            Self::DependencyCycle { .. } => {
                dependencies::cycle(queue, entry.pr, entry.waits_for()).is_some()
            }
            Self::SlotsFull { used, .. } => *used > 0,
            Self::WindowClosed { used, .. } => *used > 0 && window::in_force(queue).is_some(),
            Self::TargetFull { used, limit, .. } => {
                !header.settings.target_capacities.is_empty() && used >= limit && *used > 0
            }
            Self::BatchFilling { until, .. } => header.batch_due.is_some_and(|due| due <= *until),
            Self::RequiredChecksUnknown
            | Self::BuildingCandidate
            | Self::ChecksRunning { .. }
            | Self::ChecksQueued { .. }
            | Self::Retrying { .. }
            | Self::AwaitingReports { .. }
            | Self::ChecksSilent { .. } => run.is_some_and(|run| run.status.is_running()),
            Self::BehindPrs { prs, .. }
            | Self::PredecessorTesting { prs }
            | Self::SuccessorTesting { prs }
            | Self::BatchBisected { prs } => live(prs),
            Self::ConflictWithAhead { pr } => live(&[*pr]),
            Self::SuccessorWindow { .. } => run.is_some_and(|run| absolver(queue, run).is_some()),
            Self::BehindLanding { .. } | Self::Landing => {
                let landing = header.landing.as_ref().and_then(|landing| queue.run(landing.run));
                landing.is_some_and(|run| run.status == RunStatus::Passed)
            }
            Self::AuthorLimit { author, prs, .. } => {
                let is_own = |pr: &PrNumber| {
                    let settings = &header.settings;
                    let of = |it: &Entry| share::of(settings, &it.pull_request) == *author;
                    queue.entry_of(*pr).is_some_and(of)
                };
                header.settings.author_limit > 0 && live(prs) && prs.iter().all(is_own)
            }
            Self::Quota { author, .. } => {
                *author == share::of(&header.settings, &entry.pull_request)
                    && quota::used_up(queue, entry).is_some()
            }
            Self::QueuePaused { .. } => matches!(header.state, QueueState::Paused { .. }),
            Self::Frozen { .. } => {
                let is_held = run.is_some_and(|run| frozen::holds_landing(queue, run));
                (frozen::in_force(queue).is_some() && (is_held || !entry.priority.is_urgent()))
                    || frozen::excluding(queue, entry).is_some()
            }
            Self::QueueDraining | Self::QueueSwitchingModes => !header.state.lets_in(),
            Self::HostUnreachable { .. }
            | Self::HostAccessDenied { .. }
            | Self::HostCredentialRejected { .. } => header.host.unreachable_since.is_some(),
            Self::TargetBranchMissing => header.target.missing,
            Self::TargetRed { .. } => red::in_force(queue).is_some(),
            Self::TargetUnknown => header.target.head.is_none(),
            Self::Unexplained => false,
        }
    }
}
