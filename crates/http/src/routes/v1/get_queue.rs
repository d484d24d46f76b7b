//! `POST /v1/getQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{PlaceOnly, QueueReply, Words};
use crate::problem::{Problem, ProblemBody};

/// Read a queue's state, settings and entries.
#[utoipa::path(
    post,
    path = "/v1/getQueue",
    operation_id = "getQueue",
    tag = "merge queue",
    request_body = PlaceOnly,
    responses(
        (status = OK, description = "Done.", body = QueueReply),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn get_queue(
    api: Data<Api>,
    asked: Asked<PlaceOnly>,
) -> Result<Json<QueueReply>, Problem> {
    let (repo, branch) = asked.body.place()?;
    let queue = api.queues.queue(&asked.caller, &repo, &branch).await?;
    Ok(Json(QueueReply::of(&queue, Words(asked.caller.enum_case))))
}
