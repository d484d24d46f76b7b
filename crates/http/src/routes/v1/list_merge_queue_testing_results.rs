//! `POST /v1/listMergeQueueTestingResults`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{ResultsReply, ResultsRequest, Words};
use crate::failures::OfQueue;
use crate::problem::Problem;

/// List the results of test runs.
///
/// One result for each pull request and attempt, newest first; running tests are
/// omitted.
#[utoipa::path(
    post,
    path = "/v1/listMergeQueueTestingResults",
    operation_id = "listMergeQueueTestingResults",
    tag = "merge queue",
    request_body = ResultsRequest,
    responses((status = OK, description = "A page of results.", body = ResultsReply, example = json!({
            "testingResults": [{
                "prNumber": 42, "testRunId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11",
                "outcome": "PASSED", "endedAt": "2026-09-17T10:16:02.000Z",
                "testingDurationMs": 312_000, "cycleConclusion": "MERGED"
            }],
            "totalItems": 1
        })), OfQueue),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<ResultsRequest>,
) -> Result<Json<ResultsReply>, Problem> {
    let within = body.within(api.clock.now())?;
    let ((repo, branch), offset, take) = (&body.place, body.offset, body.take);
    let page = api.queues.testing_results(&caller, repo, branch, within, offset, take).await?;
    Ok(Json(ResultsReply::of(&page, Words(caller.compatibility.enum_case()))))
}
