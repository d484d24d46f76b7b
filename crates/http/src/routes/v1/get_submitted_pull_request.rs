//! `POST /v1/getSubmittedPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{EntryReply, EntryRequest, LookUp, Words};
use crate::failures::OfEntry;
use crate::problem::Problem;

/// Get a submitted pull request, even after it has left the queue.
///
/// `pr.branch` selects the pull request from that branch that was submitted to this queue: an open
/// one first, otherwise the one that was closed last.
#[utoipa::path(
    post,
    path = "/v1/getSubmittedPullRequest",
    operation_id = "getSubmittedPullRequest",
    tag = "merge queue",
    request_body = EntryRequest,
    responses((status = OK, description = "The pull request in the queue.", body = EntryReply, example = json!({
            "id": "4f0e9c1e-8a55-5d0f-9b1c-2a35b0a6f0d2", "state": "TESTING",
            "stateChangedAt": "2026-09-17T10:16:02.000Z", "priorityValue": 100,
            "priorityName": "medium", "usedDefaultPriorityName": "medium",
            "skipTheLine": false, "noBatch": false, "prNumber": 42, "prTitle": "Add division",
            "prSha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70", "prBaseBranch": "main",
            "prAuthor": "ada", "position": 1, "reason": "1 of 2 required checks are done",
            "waitReason": {"kind": "checks_running", "done": 1, "of": 2},
            "readiness": {
                "hasImpactedTargets": false, "requiresImpactedTargets": false,
                "doesBaseBranchMatch": true, "gitHubMergeability": "MERGEABLE"
            },
            "forceEnqueued": false, "isCurrentlySubmittedToQueue": true,
            "verifiedByTestRun": null,
            "testRunId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "exit": null
        })), OfEntry),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<EntryRequest>,
) -> Result<Json<EntryReply>, Problem> {
    let LookUp { place: (repo, branch), query, extras } = body;
    let details = api.queues.entry_details(&caller, &repo, &branch, &query, extras).await?;
    Ok(Json(EntryReply::of(&details, Words(caller.compatibility.enum_case()))))
}
