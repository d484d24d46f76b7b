//! Schemas of events of pull requests, batches and queues.

use serde_json::{Value, json};
use signalbox_domain::queue::{
    CancelReason, FailReason, LandingChange, MergeReason, QueueStateName, QueuedReason,
    SubmitReason,
};

use super::parts::{array, boolean, count, format, object, one_of, string};

/// Reasons that the contract knows beside those that are told here.
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

type Fields = Vec<(&'static str, bool, Value)>;

/// The end of a name: `merged` of `pull_request.merged`.
fn status_of(name: &'static str) -> &'static str {
    name.rsplit_once('.').map_or(name, |(_, status)| status)
}

fn common(name: &str) -> Fields {
    let repository =
        object([("host", true, string()), ("owner", true, string()), ("name", true, string())]);
    vec![
        ("type", true, json!({"const": name})),
        ("timestamp", true, format("date-time")),
        ("repository", true, repository),
        ("target_branch", true, string()),
    ]
}

fn with_status(name: &'static str) -> Fields {
    let status = json!({"const": status_of(name)});
    let mut fields = common(name);
    fields.push(("action", true, status.clone()));
    fields.push(("status", true, status));
    fields
}

/// The field of the reason, and whether a run is told of.
fn reason(status: &str) -> Option<(&'static str, Value)> {
    macro_rules! words {
        ($kind:ident, $more:expr) => {
            one_of($kind::ALL.iter().map(|it| it.word()).chain($more.iter().copied()))
        };
    }
    Some(match status {
        "submitted" => ("submitted_reason", words!(SubmitReason, [""; 0])),
        "queued" => ("queued_reason", words!(QueuedReason, QUEUED)),
        "pending_failure" | "failed" => ("failure_reason", words!(FailReason, FAILED)),
        "canceled" => ("cancellation_reason", words!(CancelReason, CANCELED)),
        "removed_from_target" => ("reason", words!(LandingChange, [""; 0])),
        "merged" => ("merged_reason", words!(MergeReason, [""; 0])),
        _ => return None,
    })
}

fn with_reason(fields: &mut Fields, status: &str) {
    if let Some((field, words)) = reason(status) {
        fields.push((field, false, words));
    }
    if matches!(status, "testing" | "failed" | "canceled") {
        fields.push(("is_bisection", true, boolean()));
    }
}

/// Of a pull request.
pub(super) fn pull_request(name: &'static str) -> Value {
    let status = status_of(name);
    let mut fields = with_status(name);
    fields.push(("author", true, string()));
    fields.push(("http_details_url", true, format("uri")));
    fields.push(("pr_number", true, count()));
    if !matches!(status, "submitted" | "queued" | "removed_from_target") {
        fields.push(("test_branch", false, string()));
        fields.push(("test_branch_sha", false, string()));
        fields.push(("test_pr_number", false, count()));
        fields.push(("batched", false, boolean()));
    }
    with_reason(&mut fields, status);
    object(fields)
}

/// Of a batch.
pub(super) fn batch(name: &'static str) -> Value {
    let mut fields = with_status(name);
    fields.push(("pr_numbers", true, array(&count())));
    fields.push(("pr_numbers_in_batch", false, array(&count())));
    fields.push(("test_branch", true, string()));
    fields.push(("test_branch_sha", true, string()));
    fields.push(("test_pr_number", false, count()));
    with_reason(&mut fields, status_of(name));
    object(fields)
}

/// Of a queue.
pub(super) fn queue(name: &'static str) -> Value {
    let state = || one_of(QueueStateName::ALL.iter().map(|state| state.word()));
    let mut fields = common(name);
    fields.push(("actor", true, string()));
    fields.push(("state", true, state()));
    if name == "queue.state_changed" {
        fields.push(("previous_state", true, state()));
        fields.push(("reason", false, string()));
    }
    object(fields)
}
