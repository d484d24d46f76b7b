//! `POST /v1/explainFailure`.

use actix_web::web::{Data, Json};
use signalbox_domain::ports::PullRequestQuery;
use signalbox_services::Extras;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{FailureReply, PullRequestRequest, Words};
use crate::failures::OfEntry;
use crate::problem::Problem;

/// Explain why a pull request failed: what is at fault, the failed checks with the end of their
/// output, the tests that failed, and what to do next.
///
/// Also for a pull request in the queue: then it has what has failed so far. With `tests:read` the
/// reply has the tests, from the results that were uploaded for the tested commit.
#[utoipa::path(
    post,
    path = "/v1/explainFailure",
    operation_id = "explainFailure",
    tag = "merge queue",
    request_body = PullRequestRequest,
    responses((status = OK, description = "What is known about the failure.", body = FailureReply, example = json!({
            "prNumber": 42, "state": "FAILED",
            "reason": "failed: TEST_RUN_REQUIRED_STATUS_FAILED (test: FAILURE)",
            "exit": {
                "state": "FAILED", "reason": "TEST_RUN_REQUIRED_STATUS_FAILED", "actor": null,
                "culprit": "itself", "culpritPrNumber": null, "details": ["test: FAILURE"],
                "sha": null, "testedTree": null, "landedTree": null
            },
            "testRunId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11",
            "testBranchSha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70",
            "testedTogether": [42],
            "failedChecks": [{
                "name": "test", "required": true, "conclusion": "FAILURE",
                "url": "https://ci.example/v1/testRuns/0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11/checks/test/output",
                "summary": "exit status: 1",
                "output": "test adds ... FAILED\nexpected 5, got 4", "isOutputCut": true
            }],
            "failedTests": [{
                "id": "06cb6db5-f807-5198-b072-af67a0636f8a",
                "html_url": "https://ci.example/acme/flaky-tests/test/06cb6db5-f807-5198-b072-af67a0636f8a?repo=acme%2Fcalc",
                "name": "adds", "variant": "", "file_path": "tests/calc.rs",
                "status": {"value": "healthy", "reason": "", "timestamp": "2026-01-01T00:00:00.000Z"},
                "known_flaky": false, "quarantined": false, "excused": false, "failures": 1,
                "failed_at": "2026-01-02T00:00:00.000Z", "message": "expected 5, got 4"
            }],
            "failedTestsCount": 1,
            "nextStep": {
                "kind": "fix_tests",
                "text": "Fix the failed tests that are not known to be flaky, push, and submit it again."
            }
        })), OfEntry),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<PullRequestRequest>,
) -> Result<Json<FailureReply>, Problem> {
    let ((repo, branch), pr) = body;
    let query = PullRequestQuery::Number(pr);
    let extras = Extras { timeline: true, ..Extras::default() };
    let details = api.queues.entry_details(&caller, &repo, &branch, &query, extras).await?;
    let explanation = api.failures().explain(&caller, &repo, &details).await?;
    let words = Words(caller.compatibility.enum_case());
    Ok(Json(FailureReply::of(&details, &explanation, &api.flaky.links, words)))
}
