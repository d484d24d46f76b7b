//! Events of pull requests, batches and queues.

use signalbox_domain::ports::QueuePlace;
use signalbox_domain::queue::{Event, EventKind, Exit, Mismatch, Subject};

use super::catalog::EventType;
use super::shapes::{
    Canceled, Failed, Failure, Landing, Merged, QueueState, Queued, Repository, Submitted, Time,
    Undone, Url,
};
use super::{PublicEvent, public_event};

/// All fields of queue events, by name.
#[derive(Clone, Default)]
struct EventFields {
    timestamp: Time,
    repository: Repository,
    target_branch: String,
    action: &'static str,
    status: &'static str,
    author: String,
    http_details_url: Url,
    pr_number: u32,
    pr_numbers: Vec<u32>,
    pr_numbers_in_batch: Option<Vec<u32>>,
    test_run_id: Option<String>,
    checks: Vec<String>,
    base_sha: String,
    composed_sha: String,
    composed_tree: String,
    expected_tree: Option<String>,
    paths: Vec<String>,
    test_branch: Option<String>,
    test_branch_sha: Option<String>,
    /// Always omitted: a draft pull request on the host is not part of the queue.
    test_pr_number: Option<u32>,
    batched: Option<bool>,
    is_bisection: bool,
    submitted_reason: Option<Submitted>,
    queued_reason: Option<Queued>,
    failure_reason: Option<Failed>,
    cancellation_reason: Option<Canceled>,
    merged_reason: Option<Merged>,
    landing_change: Option<Undone>,
    landing: Option<Landing>,
    failure: Option<Failure>,
    actor: String,
    state: QueueState,
    previous_state: QueueState,
    reason: Option<String>,
}

impl EventFields {
    fn of(place: &QueuePlace, event: &Event) -> Self {
        let run = event.run.as_ref();
        let reason = || event.reason.clone();
        let mut fields = Self {
            timestamp: event.at.into(),
            repository: Repository::from(&place.repo),
            target_branch: place.branch.to_string(),
            action: status_of(event.kind.as_str()),
            status: status_of(event.kind.as_str()),
            test_run_id: run.map(|run| run.id.to_string()),
            test_branch: run.map(|run| run.branch.to_string()),
            test_branch_sha: run.and_then(|run| run.sha.as_ref()).map(ToString::to_string),
            batched: run.map(|run| run.batched),
            is_bisection: run.is_some_and(|run| run.bisection),
            submitted_reason: reason().map(Submitted),
            queued_reason: reason().map(Queued),
            failure_reason: reason().map(Failed),
            cancellation_reason: reason().map(Canceled),
            merged_reason: reason().map(Merged),
            landing_change: reason().map(Undone),
            reason: reason(),
            ..Self::default()
        };
        match &event.subject {
            Subject::PullRequest { pr, author, url, exit } => {
                if let Some(Exit::Merged { proof: Some(proof), .. }) = exit.as_deref()
                    && let Some(mismatch) = &proof.mismatch
                {
                    fields.differ(mismatch);
                }
                fields.landing = exit.as_deref().and_then(Landing::of);
                fields.failure = exit.as_deref().and_then(Failure::of);
                fields.pr_number = pr.0;
                fields.author.clone_from(author);
                fields.http_details_url = Url(url.clone());
            }
            Subject::Batch { prs, together } => {
                fields.pr_numbers = prs.iter().map(|pr| pr.0).collect();
                fields.pr_numbers_in_batch = Some(together.iter().map(|pr| pr.0).collect());
            }
            Subject::TestRun { prs, checks } => {
                fields.pr_numbers = prs.iter().map(|pr| pr.0).collect();
                fields.checks.clone_from(checks);
            }
            Subject::Composition { prs, mismatch } => {
                fields.pr_numbers = prs.iter().map(|pr| pr.0).collect();
                fields.differ(mismatch);
            }
            Subject::Queue { by, from, to } => {
                fields.actor.clone_from(by);
                fields.state = QueueState(to.as_str());
                fields.previous_state = QueueState(from.as_str());
            }
        }
        fields
    }

    fn differ(&mut self, mismatch: &Mismatch) {
        let Mismatch { base, commit, found, expected, paths } = mismatch;
        self.base_sha = base.to_string();
        self.composed_sha = commit.to_string();
        self.composed_tree = found.to_string();
        self.expected_tree = expected.as_ref().map(ToString::to_string);
        self.paths.clone_from(paths);
    }
}

/// The end of a name: `merged` of `pull_request.merged`.
fn status_of(name: &'static str) -> &'static str {
    name.rsplit_once('.').map_or(name, |(_, status)| status)
}

/// Declares an event whose fields are those of the same name in [`EventFields`].
macro_rules! declare {
    (
        [$($doc:tt)+] $event:ident = $name:expr;
        { $($(#[$meta:meta])* $field:ident: $type:ty,)* }
        { $($(#[$maybe_meta:meta])* $maybe:ident: $maybe_type:ty,)* }
    ) => {
        public_event! {
            $($doc)+
            $event = $name;
            { $($(#[$meta])* $field: $type,)* }
            optional { $($(#[$maybe_meta])* $maybe: $maybe_type,)* }
        }

        impl From<EventFields> for $event {
            fn from(fields: EventFields) -> Self {
                Self { name: Self::NAME, $($field: fields.$field,)* $($maybe: fields.$maybe,)* }
            }
        }
    };
}

/// An event of a pull request.
macro_rules! pull_request {
    ($doc:tt $event:ident = $name:expr; { $($own:tt)* } { $($maybe:tt)* }) => {
        declare! {
            $doc $event = $name;
            {
                timestamp: Time,
                repository: Repository,
                target_branch: String,
                #[schemars(extend("const" = status_of($event::NAME)))]
                action: &'static str,
                #[schemars(extend("const" = status_of($event::NAME)))]
                status: &'static str,
                author: String,
                http_details_url: Url,
                pr_number: u32,
                $($own)*
            }
            { $($maybe)* }
        }
    };
}

/// An event of a pull request that has, or may have, a test run.
macro_rules! tested_pull_request {
    ($doc:tt $event:ident = $name:expr; $own:tt { $($maybe:tt)* }) => {
        pull_request! {
            $doc $event = $name;
            $own
            {
                test_branch: String,
                test_branch_sha: String,
                test_pr_number: u32,
                batched: bool,
                $($maybe)*
            }
        }
    };
}

/// An event of a batch. A batch has a branch and a commit.
macro_rules! batch {
    ($doc:tt $event:ident = $name:expr; { $($own:tt)* } { $($maybe:tt)* }) => {
        declare! {
            $doc $event = $name;
            {
                timestamp: Time,
                repository: Repository,
                target_branch: String,
                #[schemars(extend("const" = status_of($event::NAME)))]
                action: &'static str,
                #[schemars(extend("const" = status_of($event::NAME)))]
                status: &'static str,
                pr_numbers: Vec<u32>,
                #[schemars(required)]
                test_branch: Option<String>,
                #[schemars(required)]
                test_branch_sha: Option<String>,
                $($own)*
            }
            {
                pr_numbers_in_batch: Vec<u32>,
                test_pr_number: u32,
                $($maybe)*
            }
        }
    };
}

/// An event of a test run. Its candidate is built.
macro_rules! test_run {
    ($doc:tt $event:ident = $name:expr; { $($own:tt)* } $maybe:tt) => {
        declare! {
            $doc $event = $name;
            {
                timestamp: Time,
                repository: Repository,
                target_branch: String,
                #[schemars(extend("const" = status_of($event::NAME)))]
                action: &'static str,
                #[schemars(extend("const" = status_of($event::NAME)))]
                status: &'static str,
                pr_numbers: Vec<u32>,
                #[schemars(required)]
                test_run_id: Option<String>,
                #[schemars(required)]
                test_branch: Option<String>,
                #[schemars(required)]
                test_branch_sha: Option<String>,
                is_bisection: bool,
                $($own)*
            }
            $maybe
        }
    };
}

/// An event of a queue.
macro_rules! queue {
    ($doc:tt $event:ident = $name:expr; { $($own:tt)* } $maybe:tt) => {
        declare! {
            $doc $event = $name;
            {
                timestamp: Time,
                repository: Repository,
                target_branch: String,
                actor: String,
                state: QueueState,
                $($own)*
            }
            $maybe
        }
    };
}

/// Declares the event of each kind: the macro with the fields of its subject, the kind, the name of
/// the struct, and the fields of its own.
macro_rules! queue_events {
    ($(
        $(#[doc = $doc:literal])+
        $subject:ident!($kind:ident => $event:ident) $own:tt $(optional $maybe:tt)?
    )+) => {
        $(queue_events! {
            @one $subject [$(#[doc = $doc])+] $event = EventKind::$kind.as_str(); $own $($maybe)?
        })+

        /// The events that are declared here.
        pub(super) static EVENTS: &[EventType] = &[$(EventType::of::<$event>()),+];

        /// The payload of an event.
        pub(super) fn payload(place: &QueuePlace, event: &Event) -> String {
            let fields = EventFields::of(place, event);
            match event.kind { $(EventKind::$kind => $event::from(fields).payload(),)+ }
        }
    };
    (@one $subject:ident $doc:tt $event:ident = $name:expr; $own:tt) => {
        $subject! { $doc $event = $name; $own {} }
    };
    (@one $subject:ident $doc:tt $event:ident = $name:expr; $own:tt $maybe:tt) => {
        $subject! { $doc $event = $name; $own $maybe }
    };
}

queue_events! {
    /// A pull request was submitted to a queue.
    pull_request!(Submitted => PullRequestSubmitted) {} optional { submitted_reason: Submitted, }

    /// A pull request waits in the line, for the first time or again.
    pull_request!(Queued => PullRequestQueued) {} optional { queued_reason: Queued, }

    /// A pull request is under test.
    tested_pull_request!(Testing => PullRequestTesting) { is_bisection: bool, }

    /// The test run of a pull request failed; later results show whether it is at fault.
    tested_pull_request!(PendingFailure => PullRequestPendingFailure) {}
        optional { failure_reason: Failed, }

    /// A pull request was removed because of a failure.
    tested_pull_request!(Failed => PullRequestFailed) { is_bisection: bool, }
        optional { failure_reason: Failed, failure: Failure, }

    /// A pull request was cancelled.
    tested_pull_request!(Canceled => PullRequestCanceled) { is_bisection: bool, }
        optional { cancellation_reason: Canceled, }

    /// A pull request is on the target branch.
    tested_pull_request!(Merged => PullRequestMerged) {}
        optional { merged_reason: Merged, landing: Landing, }

    /// A merged pull request is no longer on the target branch, because the branch was moved.
    pull_request!(RemovedFromTarget => PullRequestRemovedFromTarget) {}
        optional { #[serde(rename = "reason")] landing_change: Undone, }

    /// The candidate of a batch was built.
    batch!(BatchSubmitted => BatchSubmitted) {} optional { submitted_reason: Submitted, }

    /// Pull requests of a batch went back to the line.
    batch!(BatchQueued => BatchQueued) {} optional { queued_reason: Queued, }

    /// All pull requests of a batch are under test.
    batch!(BatchTesting => BatchTesting) { is_bisection: bool, }

    /// The test run of a batch failed; later results show which pull request is at fault.
    batch!(BatchPendingFailure => BatchPendingFailure) {} optional { failure_reason: Failed, }

    /// Pull requests of a batch were removed because of a failure.
    batch!(BatchFailed => BatchFailed) { is_bisection: bool, }
        optional { failure_reason: Failed, }

    /// Pull requests of a batch were cancelled.
    batch!(BatchCanceled => BatchCanceled) { is_bisection: bool, }
        optional { cancellation_reason: Canceled, }

    /// The last pull request of a batch is on the target branch.
    batch!(BatchMerged => BatchMerged) {} optional { merged_reason: Merged, }

    /// A test run has external checks: a CI must test the commit and report their results.
    test_run!(ChecksRequested => TestRunChecksRequested) { checks: Vec<String>, }

    /// A candidate, or the commit that was to land, is not its base with the changes of its pull
    /// requests. It was not tested, or did not land, and the queue is paused.
    test_run!(CompositionMismatch => TestRunCompositionMismatch) {
        base_sha: String, composed_sha: String, composed_tree: String, paths: Vec<String>,
    } optional { expected_tree: String, }

    /// What landed for a pull request is not its base with the changes. This was found afterwards: by
    /// the landing itself, or by the daily audit. The queue is paused.
    pull_request!(LandingMismatch => PullRequestLandingMismatch) {
        base_sha: String, composed_sha: String, composed_tree: String, paths: Vec<String>,
    } optional { expected_tree: String, }

    /// The state of a queue changed: it was paused, resumed or drained, or it switches modes.
    queue!(QueueStateChanged => QueueStateChanged) { previous_state: QueueState, }
        optional { reason: String, }

    /// The settings of a queue were changed.
    queue!(QueueConfigChanged => QueueConfigChanged) {}
}
