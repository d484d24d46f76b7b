//! Texts and numbers of payloads that have a form of their own.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use signalbox_domain::flaky::{
    IncidentCause, IncidentState, MonitorKind, MonitorStatus, QuarantineOverride, TestStatus,
    TriggerKind,
};
use signalbox_domain::ids::RepoName;
use signalbox_domain::queue::{
    CancelReason, CompositionCheck, Culprit, Exit, FailReason, FailedTests, LandingChange,
    MergeMethod, MergeReason, NextStep, QueueStateName, QueuedReason, SubmitReason,
};
use signalbox_domain::time::Timestamp;

/// Reasons that the contract knows and this server never sends.
const QUEUED: &[&str] = &["BISECTION_TEST_RUN_PASSED"];
const FAILED: &[&str] = &[
    "START_TEST_RUN_INVALID_EVENT",
    "START_TEST_RUN_CONFIG_NOT_FOUND",
    "START_TEST_RUN_CONFIG_MISSING_REQUIRED_STATUSES",
    "START_TEST_RUN_CONFIG_BAD_REQUIRED_STATUSES",
    "START_TEST_RUN_CONFIG_BAD_VERSION",
    "START_TEST_RUN_DRAFT_PRS_NOT_ALLOWED",
    "GITHUB_API_DIRECT_MERGE_PR_FAILED",
];
const CANCELED: &[&str] = &[
    "TRUNK_ADMIN_REQUESTED",
    "STACKED_PR_MEMBER_PUSHED_TO",
    "STACKED_PR_MEMBER_CLOSED",
    "STACKED_PR_MEMBER_MERGED",
    "STACKED_PR_MEMBER_BASE_BRANCH_CHANGED",
];

/// Declares texts with their schemas.
macro_rules! shapes {
    ($($(#[$doc:meta])+ $name:ident($inner:ty) = $schema:expr;)+) => {
        $(
            $(#[$doc])+
            #[derive(Clone, Debug, Default, Serialize)]
            #[serde(transparent)]
            pub(super) struct $name(pub(super) $inner);

            impl JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    $schema
                }
            }
        )+
    };
}

fn text(format: &str) -> Schema {
    json_schema!({"type": "string", "format": format})
}

fn one_of(words: &[&str], more: &[&str]) -> Schema {
    let mut values: Vec<&str> = Vec::new();
    for word in words.iter().chain(more) {
        if !values.contains(word) {
            values.push(word);
        }
    }
    json_schema!({"type": "string", "enum": values})
}

shapes! {
    /// A time by RFC 3339.
    Time(String) = text("date-time");
    /// An address.
    Url(String) = text("uri");
    /// A UUID.
    Id(String) = text("uuid");
    /// A share, 0 to 1.
    Share(f64) = json_schema!({"type": "number", "minimum": 0, "maximum": 1});
    /// An object without a fixed form.
    Particulars(serde_json::Map<String, Value>) = json_schema!({"type": "object"});
    /// The state of a queue.
    QueueState(&'static str) = one_of(QueueStateName::NAMES, &[]);
    /// Why a pull request was submitted.
    Submitted(String) = one_of(SubmitReason::NAMES, &[]);
    /// Why it waits in the line.
    Queued(String) = one_of(QueuedReason::NAMES, QUEUED);
    /// Why it failed.
    Failed(String) = one_of(FailReason::NAMES, FAILED);
    /// Why it was cancelled.
    Canceled(String) = one_of(CancelReason::NAMES, CANCELED);
    /// How it was merged.
    Merged(String) = one_of(MergeReason::NAMES, &[]);
    /// How pull requests became commits.
    Method(&'static str) = one_of(MergeMethod::NAMES, &[]);
    /// How the composition of a landing was checked.
    Check(&'static str) = one_of(CompositionCheck::NAMES, &[]);
    /// What is at fault.
    CulpritWord(&'static str) = one_of(Culprit::NAMES, &[]);
    /// What to do next.
    NextStepWord(&'static str) = one_of(NextStep::NAMES, &[]);
    /// How a landing was undone.
    Undone(String) = one_of(LandingChange::NAMES, &[]);
    /// The status of a test.
    Status(&'static str) = one_of(TestStatus::NAMES, &[]);
    /// The status of a test in upper case.
    UpperStatus(String) = {
        let words: Vec<String> = TestStatus::NAMES.iter().map(|it| it.to_uppercase()).collect();
        one_of(&words.iter().map(String::as_str).collect::<Vec<_>>(), &[])
    };
    /// The status of a monitor.
    MonitorState(&'static str) = one_of(MonitorStatus::NAMES, &[]);
    /// The kind of a monitor.
    MonitorKindWord(&'static str) = one_of(MonitorKind::NAMES, &[]);
    /// What triggered a change of status.
    TriggerWord(&'static str) = one_of(TriggerKind::NAMES, &[]);
    /// Whether a test is quarantined whatever its status.
    OverrideWord(&'static str) = one_of(QuarantineOverride::NAMES, &[]);
    /// The status of an incident.
    IncidentStateWord(&'static str) = one_of(IncidentState::NAMES, &[]);
    /// How an incident was recognized.
    IncidentCauseWord(&'static str) = one_of(IncidentCause::NAMES, &[]);
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at.to_string())
    }
}

/// A repository by its parts.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Repository {
    host: String,
    owner: String,
    name: String,
}

impl From<&RepoName> for Repository {
    fn from(repo: &RepoName) -> Self {
        Self { host: repo.host.to_string(), owner: repo.owner.clone(), name: repo.name.clone() }
    }
}

/// An object with an address.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) html_url: Url,
}

/// A pull request of a landing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LandedChange {
    pr_number: u32,
    head: String,
}

/// What a landing consists of. With the commits, git computes the landed tree again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Landing {
    sha: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tested_tree: Option<String>,
    landed_tree: String,
    base: String,
    changes: Vec<LandedChange>,
    merge_method: Method,
    exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_checked_because: Option<String>,
    merged_by_host: Vec<String>,
}

/// A failure: what is at fault, and what to do next.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Failure {
    culprit: CulpritWord,
    /// The pull request at fault, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    culprit_pr_number: Option<u32>,
    /// Failed checks, conflicting paths, or the git host's message.
    details: Vec<String>,
    next_step: NextStepWord,
}

impl Failure {
    /// The failure of a pull request. Test results may still come, so they do not count here.
    pub(super) fn of(exit: &Exit) -> Option<Self> {
        let Exit::Failed { reason, culprit, details, .. } = exit else { return None };
        let pr = if let Culprit::PullRequest(pr) = culprit { Some(pr.0) } else { None };
        let next_step = NextStep::after(*reason, culprit, FailedTests::default());
        Some(Self {
            culprit: CulpritWord(culprit.as_str()),
            culprit_pr_number: pr,
            details: details.clone(),
            next_step: NextStepWord(next_step.as_str()),
        })
    }
}

impl Landing {
    /// The landing of a pull request that the queue has merged.
    pub(super) fn of(exit: &Exit) -> Option<Self> {
        let Exit::Merged { sha: Some(sha), tested_tree, landed_tree: Some(tree), proof, .. } = exit
        else {
            return None;
        };
        let proof = proof.as_deref()?;
        let changes = proof.changes.iter();
        let composition = proof.composition.as_ref();
        Some(Self {
            sha: sha.to_string(),
            tested_tree: tested_tree.as_ref().map(ToString::to_string),
            landed_tree: tree.to_string(),
            base: proof.base.to_string(),
            changes: changes
                .map(|(pr, head)| LandedChange { pr_number: pr.0, head: head.to_string() })
                .collect(),
            merge_method: Method(proof.method.as_str()),
            exact: proof.exact,
            check: composition.map(|it| Check(it.check.as_str())),
            not_checked_because: composition.and_then(|it| it.why_not.clone()),
            merged_by_host: composition.map(|it| it.merged_by_host.clone()).unwrap_or_default(),
        })
    }
}
