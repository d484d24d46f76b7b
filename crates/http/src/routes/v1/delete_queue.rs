//! `POST /v1/deleteQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, PlaceOnly};
use crate::problem::{Problem, ProblemBody};

/// Delete an empty queue.
#[utoipa::path(
    post,
    path = "/v1/deleteQueue",
    operation_id = "deleteQueue",
    tag = "merge queue",
    request_body = PlaceOnly,
    responses(
        (status = OK, description = "Done.", body = Empty),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn delete_queue(
    api: Data<Api>,
    asked: Asked<PlaceOnly>,
) -> Result<Json<Empty>, Problem> {
    let (repo, branch) = asked.body.place()?;
    api.queues.delete_queue(&asked.caller, &repo, &branch).await?;
    Ok(Json(Empty {}))
}
