//! `POST /v1/updateQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{SettingsReply, UpdateQueue, Words};
use crate::problem::{Problem, ProblemBody};

/// Change a queue's settings or state. What is left out stays as it is.
#[utoipa::path(
    post,
    path = "/v1/updateQueue",
    operation_id = "updateQueue",
    tag = "merge queue",
    request_body = UpdateQueue,
    responses(
        (status = OK, description = "Done.", body = SettingsReply),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn update_queue(
    api: Data<Api>,
    asked: Asked<UpdateQueue>,
) -> Result<Json<SettingsReply>, Problem> {
    let change = asked.body.change()?;
    let (repo, branch) = change.place;
    let (settings, state, reason) = (change.settings, change.state, change.reason);
    let queue =
        api.queues.update_queue(&asked.caller, &repo, &branch, settings, state, reason).await?;
    Ok(Json(SettingsReply::after_update(&queue, Words(asked.caller.enum_case))))
}
