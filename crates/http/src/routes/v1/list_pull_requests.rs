//! `POST /v1/listPullRequests`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{ListReply, ListRequest, Listing, Words};
use crate::failures::OfQueue;
use crate::problem::Problem;

/// List a queue's pull requests, including the ones that have left it.
///
/// Most recently submitted first. `since` and `until` limit when a pull request left the queue: one
/// that failed then and was submitted again is listed with its current state.
#[utoipa::path(
    post,
    path = "/v1/listPullRequests",
    operation_id = "listPullRequests",
    tag = "merge queue",
    request_body = ListRequest,
    responses((status = OK, description = "A page of pull requests.", body = ListReply, example = json!({
            "pullRequests": [{
                "id": "4f0e9c1e-8a55-5d0f-9b1c-2a35b0a6f0d2", "state": "FAILED",
                "stateChangedAt": "2026-09-17T10:16:02.000Z", "priorityValue": 100,
                "priorityName": "medium", "usedDefaultPriorityName": "medium",
                "skipTheLine": false, "noBatch": false, "prNumber": 42, "prTitle": "Add division",
                "prSha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70", "prBaseBranch": "main",
                "prAuthor": "ada", "position": null,
                "reason": "failed: TEST_RUN_REQUIRED_STATUS_FAILED (test)", "waitReason": null
            }],
            "nextCursor": "06533a1c-2f5b-8a61-8000-00000000002a"
        })), OfQueue),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<ListRequest>,
) -> Result<Json<ListReply>, Problem> {
    let Listing { place: (repo, branch), filter, after, take } = body;
    let page = api.queues.pull_requests(&caller, &repo, &branch, &filter, after, take).await?;
    Ok(Json(ListReply::of(&page, Words(caller.compatibility.enum_case()))))
}
