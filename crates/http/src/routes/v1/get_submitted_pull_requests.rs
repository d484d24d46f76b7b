//! `POST /v1/getSubmittedPullRequests`.

use actix_web::web::{Data, Json};
use signalbox_services::Extras;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{EntriesReply, EntriesRequest, EntryReply, LookUps, Words};
use crate::failures::OfQueue;
use crate::problem::Problem;

/// Get several submitted pull requests, even after they have left the queue.
///
/// `notFound` lists pull requests that were never submitted; the call still succeeds.
#[utoipa::path(
    post,
    path = "/v1/getSubmittedPullRequests",
    operation_id = "getSubmittedPullRequests",
    tag = "merge queue",
    request_body = EntriesRequest,
    responses((status = OK, description = "The pull requests in the queue.", body = EntriesReply, example = json!({
            "pullRequests": [{
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
            }],
            "notFound": [41]
        })), OfQueue),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<EntriesRequest>,
) -> Result<Json<EntriesReply>, Problem> {
    let LookUps { place: (repo, branch), prs, timeline } = body;
    let extras = Extras { timeline, ..Extras::default() };
    let found = api.queues.entries(&caller, &repo, &branch, &prs, extras).await?;
    let words = Words(caller.compatibility.enum_case());
    let pull_requests = found.entries.iter().map(|it| EntryReply::of(it, words)).collect();
    let not_found = found.not_found.iter().map(|pr| pr.0).collect();
    Ok(Json(EntriesReply { pull_requests, not_found }))
}
