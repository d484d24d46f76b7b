//! The merge queue: states, commands, facts and the planner that turns them into transitions.
//!
//! Everything here is pure: no `async`, no trait objects, no ports, no clock and no randomness.
//! [`decide`] carries out a [`Command`] or refuses it, [`absorb`] applies a [`Fact`], and
//! [`next_deadline`] returns when to absorb [`Fact::TimePassed`]. Both entry points return a
//! [`Transition`]: the new state, the changed rows, the effects to run, and the decisions with
//! their reasons.

mod batch;
mod bisection_runs;
mod capacity;
mod command;
mod composition;
mod decision;
mod dependency;
mod effect;
mod ended;
mod entry;
mod estimate;
mod event;
mod exit;
mod external;
mod fact;
mod freeze;
mod freeze_scope;
mod header;
mod host_health;
mod invariant;
mod journal;
mod justified;
mod landing;
mod lane_index;
mod lanes;
mod management;
mod metrics;
mod moves;
mod next_step;
mod order;
mod outcomes;
mod parts;
mod plan;
mod policy;
mod priority;
mod pull_request;
mod readiness;
mod reason;
mod refusal;
mod retry;
mod run;
mod settings;
mod share;
mod sorted;
mod started;
mod state;
mod target_rules;
mod targets;
mod testing_result;
mod timeline;
mod transition;
mod turns;
mod usage;
mod view;
mod wait_reason;
mod waiting;

pub use bisection_runs::{bisected_run, runs_of_parts};
pub use capacity::InvalidCapacity;
pub use command::{Actor, Command, Submission, SubmissionBuilder};
pub use composition::{
    Comparison, Composition, CompositionCheck, Contribution, Listing, MOST_PATHS, Mismatch, Object,
    compare as compare_trees,
};
pub use decision::{Decision, IgnoredBecause, Moved};
pub use dependency::{Dependency, DependencyState, DependsOn, MAX_DEPENDENCIES};
pub use effect::{
    ANSWERS, Ahead, Answer, BuildCandidate, Change, Effect, EffectClass, Land, NumberedEffect,
    RunChecks,
};
pub use entry::{Behind, Entry, EntryState, Part, Proven};
pub use estimate::{Basis, Estimate, Estimates, Overdue, PERCENTILE, durations, estimate};
pub use event::{Event, EventBatch, EventKind, EventRun, Subject};
pub use exit::{Culprit, Evidence, Exit, LandingProof};
pub use external::ExternalReport;
pub use fact::{CheckReport, ConflictWith, Fact, HostStatuses, LandRefusal, WrongLanding};
pub use freeze::{
    Freeze, FreezeState, InvalidFreeze, PartialFreeze, is_endless_freeze, is_partial_freeze,
};
pub use freeze_scope::{FreezeScope, InvalidScope};
pub use header::{Header, Target};
pub use host_health::{HostHealth, HostTrouble, HostTroubleKind};
pub use invariant::{Violation, check as check_invariants};
pub use journal::{Input, JournalRecord, fold};
pub use justified::{Awaited, awaited, unjustified};
pub use landing::Landing;
pub use management::{ChangeSource, Drift, ManagedState, Management};
pub use metrics::{BUCKETS_SECONDS, Histogram, QueueMetrics, Stay, measure};
pub use moves::Move;
pub use next_step::{FailedTests, NextStep};
pub use order::LinePosition;
pub use outcomes::{Outcomes, ShareOutcomes};
pub use plan::{absorb, decide, next_deadline};
use plan::{bisect, dependencies, frozen, pretest, quota, red, window};
pub use policy::{Policy, PolicyId, PolicyView, SharedPolicy, Standard};
pub use priority::{Priority, PriorityName};
pub use pull_request::{
    InvalidPullRequest, Mergeability, PullRequest, PullRequestBuilder, PullRequestState,
    STATE_LABELS,
};
pub use readiness::Readiness;
pub use reason::{
    BlockReason, CancelReason, FailReason, LandingChange, MergeReason, PassReason, QueuedReason,
    Reason, RunCancelReason, SubmitReason, TestFailure,
};
pub use refusal::Refusal;
pub use retry::{CheckCause, FailureCause, RedTarget, Retries, Retry, RetryClass, machine_failure};
pub use run::{
    Candidate, Check, CheckConclusion, CheckStatus, Member, RequiredStatuses, RunStatus,
    SILENCE_MINUTES, StatusSource, TestRun,
};
pub use settings::{
    BatchingRule, BisectionMode, DirectMergeMode, LineSyntax, MAX_LIST, MAX_NAME, MergeMethod,
    Mode, OptimizationMode, ReparentingMode, SETTINGS, SettingGroup, SettingKind, SettingSpec,
    SettingValue, Settings, SettingsBuilder, SettingsPatch, SettingsWarning, SuccessEstimates,
    TestBranchConstructionMode, setting,
};
pub use state::{PrState, Queue, QueueState, QueueStateName, RequestedState};
pub use target_rules::{
    ChangedPaths, ComputedTargets, InvalidTargetRule, MAX_CHANGED_PATHS, TargetRules, WhyAll,
};
pub use targets::{ReportedTargets, TargetSet, TargetSetBuilder, Targets, TargetsOrigin};
pub use testing_result::{BisectionPart, Outcome, TestingResult, testing_results};
pub use timeline::{FailedStatus, PrRef, Step, Terms, timeline};
pub use transition::{Changes, Transition};
pub use usage::Usage;
pub use view::{EntryView, QueueView, view_entries, view_entry, view_landing, view_queue};
pub use wait_reason::{Particular, WaitReason};

/// A default of stored values.
#[cfg(feature = "serde")]
const fn yes() -> bool {
    true
}
