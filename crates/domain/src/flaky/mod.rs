//! Flaky tests: how results are judged, and which tests are quarantined. Pure, as [`crate::queue`].
//!
//! A [`TestCase`] is a value. [`decide`] answers a [`Command`], [`absorb`] applies a [`Fact`],
//! [`next_deadline`] says when time alone changes something. Each returns or leads to a
//! [`Transition`]: the new state, the decisions, and the public events.
//!
//! [`Monitor`]s are data. The summary of a test's runs, a [`Summary`], becomes a [`Reading`] per
//! monitor, and readings are what [`Fact::Measured`] carries.

mod branch;
mod cluster;
mod command;
mod decision;
mod delay;
mod digest;
mod directory;
mod event;
mod excuse;
mod fact;
mod guard;
mod identity;
mod incident;
mod intake;
mod invariant;
mod journal;
mod known_failure;
mod mask;
mod monitor;
mod origin;
mod outline;
mod plan;
mod presence;
mod progress;
mod quarantine;
mod reason;
mod refusal;
mod rename;
mod report;
mod settings;
mod state;
mod transition;

pub use branch::{BranchClass, BranchPattern, BranchRules, BranchScope, MAX_PATTERNS};
pub use cluster::{Failure, FailureCluster, Fingerprint, cluster_failures, most_common_failures};
pub use command::{Actor, Command, MAX_REASON, MuteLength};
pub use decision::{Decision, IgnoredBecause, MonitorCause};
pub use delay::{Delay, delayed, delays};
pub use directory::{AskedTest, IdCollision, TestDirectory};
pub use event::{Event, EventKind};
pub(crate) use excuse::listed;
pub use excuse::{Excuse, Excused, FailedCheck, excuse};
pub use fact::Fact;
pub use guard::{Admission, InfrastructureGuard, Trust, UploadCounts, admit};
pub use identity::{MAX_NAME_BYTES, TestId, TestKey};
pub use incident::{
    Assessment, Failing, FailureHistory, FailureKey, INCIDENT_CHANGED, Incident, IncidentCause,
    IncidentDecision, IncidentId, IncidentState, Ran, Recount, UploadLook, assess, failure_keys,
    failures_of,
};
pub use intake::{Addition, HourCount, Intake, KnownKeys, ReportedTest, RunRecord, intake};
pub use invariant::{Violation, check as check_invariants};
pub use journal::{Input, JournalRecord, fold};
pub use known_failure::{KnownFailure, SEEN_WITHIN_HOURS, TestedChanges, known_failure};
pub use mask::mask;
pub use monitor::kinds::*;
pub use monitor::{
    Action, BUCKET_MINUTES, Before, Bucket, Classification, CodeSummary, Evidence, MAX_HOURS,
    MEASURE_EVERY_MINUTES, Monitor, MonitorId, MonitorKind, MonitorReading, MonitorRule,
    MonitorStatus, PASSES_BETWEEN, Parameter, ParameterSpec, Period, Reading, Rule, Run, Runs,
    SameCode, Summary, Template, Verdict, Window, WindowRules, Windows, bucket_length,
    check_labels, check_name, horizon, offered,
};
pub use origin::{Base, Doubt, NoOrigin, Origin};
pub use outline::{Outline, RunsPart, UploadRuns};
pub use plan::{absorb, decide, next_deadline};
pub use presence::{
    Presence, RETIRED_AFTER_COMMITS, RETIRED_AFTER_HOURS, Retirement, StableRun, place,
};
pub use progress::{IMPORT_FINISHED, ImportSummary, Imported, Progress};
pub use quarantine::{
    AutoQuarantine, QuarantineCause, QuarantineOverride, QuarantineSettings, QuarantineSince,
    Quarantining, RELEASE_DAYS, TestStatus, can_be_released, is_known_quarantined, is_quarantined,
};
pub use reason::{StatusReason, Trigger, TriggerKind};
pub use refusal::Refusal;
pub use rename::{Inheritance, RENAMED_AFTER_COMMITS, RENAMED_AFTER_MINUTES, renames};
pub use report::{
    IngestOutcome, ReportedFailure, ReportedRun, RunOutcome, Upload, UploadId, UploadSource,
};
pub use settings::{MAX_MONITORS, Settings, SettingsPatch};
pub use state::{
    Finding, Judgement, LabelSource, ManualFlag, MonitorRecord, Mute, QuarantineDecision,
    Suspicion, TestCase,
};
pub use transition::Transition;
