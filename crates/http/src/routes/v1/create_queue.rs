//! `POST /v1/createQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{CreateQueue, Empty};
use crate::problem::{Problem, ProblemBody};

/// Create the queue of a branch.
#[utoipa::path(
    post,
    path = "/v1/createQueue",
    operation_id = "createQueue",
    tag = "merge queue",
    request_body = CreateQueue,
    responses(
        (status = OK, description = "Done.", body = Empty),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn create_queue(
    api: Data<Api>,
    asked: Asked<CreateQueue>,
) -> Result<Json<Empty>, Problem> {
    let (repo, branch) = asked.body.place()?;
    let (mode, concurrency) = (asked.body.mode()?, asked.body.concurrency);
    api.queues.create_queue(&asked.caller, &repo, &branch, mode, concurrency).await?;
    Ok(Json(Empty {}))
}
