//! A timeline: one item per step, with one object named after its state.

use serde::Serialize;
use signalbox_domain::queue::{
    CheckConclusion, Culprit, Entry, FailReason, FailedStatus, PrRef, PrState, Step,
};
use utoipa::ToSchema;

use super::Words;
use super::run::TestedPullRequest;
use super::words::{BlockReasonWord, CulpritWord, PrStateWord, RunStatusWord, StatusSourceWord};

/// A pull request in a step.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrRefReply {
    pr_number: u32,
    /// Its page, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pr_url: Option<String>,
}

fn references(prs: &[PrRef]) -> Vec<PrRefReply> {
    prs.iter().map(|it| PrRefReply { pr_number: it.pr.0, pr_url: it.url.clone() }).collect()
}

/// A required status that made a test run fail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailedStatusReply {
    name: String,
    /// `FAILURE`, `TIMED_OUT` …, always in upper case; omitted when it timed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    conclusion: Option<&'static str>,
    /// The URL of its details.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

fn statuses(failed: &[FailedStatus]) -> Vec<FailedStatusReply> {
    let reply = |it: &FailedStatus| FailedStatusReply {
        name: it.name.clone(),
        conclusion: it.conclusion.map(CheckConclusion::as_str),
        url: it.url.clone(),
    };
    failed.iter().map(reply).collect()
}

/// It was submitted, or is no longer ready.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotReadyStep {
    reason: String,
    actor: String,
    /// The priority at the last submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    /// Whether it must be tested alone; at the last submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_batch: Option<bool>,
}

/// It waits in the line.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingStep {
    reason: String,
    actor: String,
    /// The pull requests that it waited for, or waits for now.
    prerequisite_pull_requests: Vec<PrRefReply>,
}

/// A test run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestRunStep {
    id: String,
    branch: String,
    /// The tested commit; omitted when it was never built.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha: Option<String>,
    /// Its current status.
    #[schema(value_type = RunStatusWord)]
    status: String,
    required_statuses: Vec<String>,
    #[schema(value_type = Option<StatusSourceWord>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    required_statuses_source: Option<String>,
    tested_pull_requests: Vec<TestedPullRequest>,
}

/// It is being tested.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestingStep {
    reason: String,
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_run: Option<TestRunStep>,
    /// The pull requests ahead that the candidate contains.
    prerequisite_pull_requests: Vec<PrRefReply>,
}

/// Its tests passed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestsPassedStep {
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_branch_sha: Option<String>,
    /// The entry whose run proved it, when that was another one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    successor_merge_item_id: Option<String>,
    /// The other pull requests of the same run.
    other_tested_pull_requests: Vec<TestedPullRequest>,
    /// The pull requests that it waits for now.
    waiting_for: Vec<PrRefReply>,
}

/// Its run failed; later results show whether it is at fault.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingFailureStep {
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_run_id: Option<String>,
    failure_causing_statuses: Vec<FailedStatusReply>,
    /// The pull requests that it waits for now.
    waiting_for: Vec<PrRefReply>,
}

/// What blocked the merge.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlockReasonReply {
    #[schema(value_type = BlockReasonWord)]
    kind: String,
}

/// What it conflicts with.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConflictCulprit {
    #[schema(value_type = CulpritWord)]
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_request: Option<PrRefReply>,
}

/// It was removed because of a failure.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureStep {
    reason: String,
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_run_id: Option<String>,
    failure_causing_statuses: Vec<FailedStatusReply>,
    block_reasons: Vec<BlockReasonReply>,
    /// At the end of the last stay, when its changes conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict_culprit: Option<ConflictCulprit>,
    /// Conflicting paths, failed statuses, or the host's message.
    details: Vec<String>,
}

/// It left, merged or on request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndStep {
    reason: String,
    actor: String,
}

/// A step of a pull request's timeline: `state` names it, and one of the objects has its details.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepReply {
    #[schema(example = "2026-09-17T10:16:02.000Z")]
    timestamp: String,
    #[schema(value_type = PrStateWord)]
    state: String,
    #[serde(flatten)]
    what: What,
}

/// The details of a step.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum What {
    NotReady(NotReadyStep),
    Pending(PendingStep),
    Testing(TestingStep),
    TestsPassed(TestsPassedStep),
    PendingFailure(PendingFailureStep),
    Failure(FailureStep),
    Cancellation(EndStep),
    Merged(EndStep),
}

impl StepReply {
    pub(super) fn of(entry: &Entry, step: &Step, words: Words) -> Self {
        let (reason, actor) = (words.word(step.reason.as_str()), step.actor.to_string());
        let run = step.run.as_ref();
        let test_run_id = run.map(|run| run.id.to_string());
        let candidate = run.and_then(|run| run.candidate.as_ref());
        let sha = candidate.map(|candidate| candidate.sha.to_string());
        let what = match step.state {
            PrState::NotReady => What::NotReady(NotReadyStep {
                reason,
                actor,
                priority: step.terms.map(|terms| terms.priority.value),
                no_batch: step.terms.map(|terms| terms.no_batch),
            }),
            PrState::Pending => What::Pending(PendingStep {
                reason,
                actor,
                prerequisite_pull_requests: references(&step.prerequisites),
            }),
            PrState::Testing => What::Testing(TestingStep {
                reason,
                actor,
                test_run: run.map(|run| TestRunStep {
                    id: run.id.to_string(),
                    branch: run.branch.to_string(),
                    sha,
                    status: words.word(run.status.as_str()),
                    required_statuses: run
                        .required
                        .as_ref()
                        .map(|required| required.names.clone())
                        .unwrap_or_default(),
                    required_statuses_source: run
                        .required
                        .as_ref()
                        .map(|required| words.word(required.source.as_str())),
                    tested_pull_requests: run.group.iter().map(TestedPullRequest::of).collect(),
                }),
                prerequisite_pull_requests: references(&step.prerequisites),
            }),
            PrState::TestsPassed => What::TestsPassed(TestsPassedStep {
                reason,
                test_run_id,
                test_branch: run.map(|run| run.branch.to_string()),
                test_branch_sha: sha,
                successor_merge_item_id: step.successor.map(|id| id.to_string()),
                other_tested_pull_requests: step
                    .tested_with(entry.pr)
                    .map(TestedPullRequest::of)
                    .collect(),
                waiting_for: references(&step.waiting_for),
            }),
            PrState::PendingFailure => What::PendingFailure(PendingFailureStep {
                reason,
                test_run_id,
                failure_causing_statuses: statuses(&step.failed_statuses),
                waiting_for: references(&step.waiting_for),
            }),
            PrState::Failed => What::Failure(FailureStep {
                conflict_culprit: conflict_culprit(entry, step, words),
                reason,
                actor,
                test_run_id,
                failure_causing_statuses: statuses(&step.failed_statuses),
                block_reasons: step
                    .block_reason
                    .iter()
                    .map(|kind| BlockReasonReply { kind: words.word(kind.as_str()) })
                    .collect(),
                details: step.details.clone(),
            }),
            PrState::Cancelled => What::Cancellation(EndStep { reason, actor }),
            PrState::Merged => What::Merged(EndStep { reason, actor }),
        };
        Self { timestamp: step.at.to_string(), state: words.word(step.state.as_str()), what }
    }
}

fn conflict_culprit(entry: &Entry, step: &Step, words: Words) -> Option<ConflictCulprit> {
    if step.reason != FailReason::MergeConflict.into() {
        return None;
    }
    let (word, pr) = match step.culprit.as_ref()? {
        Culprit::Itself | Culprit::Host => return None,
        Culprit::TargetBranch => ("BASE_BRANCH", None),
        Culprit::PullRequest(pr) => ("QUEUE_PR", Some(step.reference(entry, *pr))),
    };
    let pull_request = pr.map(|it| PrRefReply { pr_number: it.pr.0, pr_url: it.url });
    Some(ConflictCulprit { r#type: words.word(word), pull_request })
}
