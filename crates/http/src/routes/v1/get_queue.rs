//! `POST /v1/getQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{QueueReply, QueueRequest, Words};
use crate::failures::OfQueue;
use crate::problem::Problem;

/// Read a queue: its state, its settings and what is in it.
#[utoipa::path(
    post,
    path = "/v1/getQueue",
    operation_id = "getQueue",
    tag = "merge queue",
    request_body = QueueRequest,
    responses((status = OK, description = "The queue.", body = QueueReply, example = json!({
            "state": "RUNNING", "branch": "main", "concurrency": 5, "bisectionConcurrency": 5,
            "testingTimeoutMinutes": 300, "mode": "SINGLE", "canOptimisticallyMerge": false,
            "pendingFailureDepth": 0, "batch": false, "batchingMaxWaitTimeMinutes": 5,
            "batchingMinSize": 4, "createPrsForTestingBranches": true, "commentsEnabled": true,
            "commandsEnabled": true, "statusCheckEnabled": true, "requiredStatuses": ["test"],
            "directMergeMode": "OFF", "optimizationMode": "OFF", "mergeMethod": "SQUASH",
            "extensionEnabled": true, "enqueueingLabel": "signalbox-merge-queue-submit",
            "labelCommandsEnabled": false, "stateLabelsEnabled": false, "notReadyTimeoutHours": 24,
            "testBranchConstructionMode": "RENAME_TEMP_BRANCH", "allowedBotSubmitters": [],
            "batchingRules": [], "pausedBy": null, "pausedReason": null,
            "enqueuedPullRequests": [{
                "id": "4f0e9c1e-8a55-5d0f-9b1c-2a35b0a6f0d2", "state": "TESTING",
                "stateChangedAt": "2026-09-17T10:16:02.000Z", "priorityValue": 100,
                "priorityName": "medium", "usedDefaultPriorityName": "medium",
                "skipTheLine": false, "noBatch": false, "prNumber": 42, "prTitle": "Add division",
                "prSha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70", "prBaseBranch": "main",
                "prAuthor": "ada", "position": 1, "reason": "1 of 2 required checks are done",
                "waitReason": {"kind": "checks_running", "done": 1, "of": 2}
            }]
        })), OfQueue),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Asked { caller, asked }: Asked<QueueRequest>,
) -> Result<Json<QueueReply>, Problem> {
    let (repo, branch) = asked;
    let queue = api.queues.queue(&caller, &repo, &branch).await?;
    Ok(Json(QueueReply::of(&queue, Words(caller.compatibility.enum_case()))))
}
