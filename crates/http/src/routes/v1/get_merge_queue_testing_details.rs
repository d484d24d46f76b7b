//! `POST /v1/getMergeQueueTestingDetails`.

use actix_web::web::{Data, Json};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{RunRequest, TestRunReply, TestRunsReply, Words};
use crate::failures::OfRuns;
use crate::problem::Problem;

/// One run, or all in progress.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Details {
    /// The requested run.
    One(Box<TestRunReply>),
    /// All runs in progress.
    All(TestRunsReply),
}

/// Get details of test runs.
///
/// With `testRunId` one run, even after it has ended; without it all runs in progress, as
/// `testRuns`.
#[utoipa::path(
    post,
    path = "/v1/getMergeQueueTestingDetails",
    operation_id = "getMergeQueueTestingDetails",
    tag = "merge queue",
    request_body = RunRequest,
    responses((status = OK, description = "The run, or all in progress.", body = Details, example = json!({
            "testRunId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11",
            "requiredStatuses": ["test"], "requiredStatusesSource": "MERGE_INSTANCE",
            "testBranch": "signalbox-merge/pr-42/0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11",
            "testBranchSha": "9d58c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f7",
            "createdAt": "2026-09-17T10:16:02.000Z", "status": "IN_PROGRESS",
            "checkSuites": [{"checkRuns": [{
                "name": "test", "url": "https://queue.example/runs/test", "status": "COMPLETED",
                "conclusion": "SUCCESS", "summary": "passed in 12 s"
            }]}],
            "statusChecks": [],
            "testedPullRequests": [{
                "prNumber": 42, "prUrl": "https://git.example/acme/calc/pull/42",
                "title": "Add division"
            }],
            "impactedTargets": ["//calc:core"], "impactedTargetsForTestedPrs": ["//calc:core"],
            "dependentPrs": [41]
        })), OfRuns),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RunRequest>,
) -> Result<Json<Details>, Problem> {
    let ((repo, branch), run) = body;
    let words = Words(caller.compatibility.enum_case());
    let Some(run) = run else {
        let runs = api.queues.runs_in_progress(&caller, &repo, &branch).await?;
        let test_runs = runs.iter().map(|run| TestRunReply::of(run, words)).collect();
        return Ok(Json(Details::All(TestRunsReply { test_runs })));
    };
    let run = api.queues.run(&caller, &repo, &branch, run.parse()?).await?;
    Ok(Json(Details::One(Box::new(TestRunReply::of(&run, words)))))
}
