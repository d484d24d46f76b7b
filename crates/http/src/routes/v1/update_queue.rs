//! `POST /v1/updateQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{SettingsReply, Update, UpdateRequest, Words};
use crate::failures::OfUpdate;
use crate::problem::Problem;

/// Change a queue's settings or state.
///
/// What is left out stays as it is. The reply shows what was asked for: a change of mode that
/// waits until the line is empty shows the new mode, and only getQueue shows
/// `SWITCHING_MODES`.
#[utoipa::path(
    post,
    path = "/v1/updateQueue",
    operation_id = "updateQueue",
    tag = "merge queue",
    request_body = UpdateRequest,
    responses((status = OK, description = "The queue after the change.", body = SettingsReply, example = json!({
            "state": "RUNNING", "branch": "main", "concurrency": 5, "bisectionConcurrency": 5,
            "testingTimeoutMinutes": 300, "mode": "SINGLE", "canOptimisticallyMerge": false,
            "pendingFailureDepth": 0, "batch": false, "batchingMaxWaitTimeMinutes": 5,
            "batchingMinSize": 4, "createPrsForTestingBranches": true, "commentsEnabled": true,
            "commandsEnabled": true, "statusCheckEnabled": true, "requiredStatuses": ["test"],
            "directMergeMode": "OFF", "optimizationMode": "OFF", "mergeMethod": "SQUASH",
            "extensionEnabled": true, "enqueueingLabel": "signalbox-merge-queue-submit",
            "labelCommandsEnabled": false, "stateLabelsEnabled": false, "notReadyTimeoutHours": 24,
            "testBranchConstructionMode": "RENAME_TEMP_BRANCH", "allowedBotSubmitters": [],
            "batchingRules": [], "pausedBy": null, "pausedReason": null
        })), OfUpdate),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Asked { caller, asked }: Asked<UpdateRequest>,
) -> Result<Json<SettingsReply>, Problem> {
    let Update { place: (repo, branch), settings, state, reason } = asked;
    let queue = api.queues.update_queue(&caller, &repo, &branch, settings, state, reason).await?;
    Ok(Json(SettingsReply::after_update(&queue, Words(caller.compatibility.enum_case()))))
}
