//! `POST /v1/deleteQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, QueueRequest};
use crate::failures::OfDelete;
use crate::problem::Problem;

/// Delete an empty queue.
///
/// Cancel or merge what is in it first.
#[utoipa::path(
    post,
    path = "/v1/deleteQueue",
    operation_id = "deleteQueue",
    tag = "merge queue",
    request_body = QueueRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfDelete),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Asked { caller, asked }: Asked<QueueRequest>,
) -> Result<Json<Empty>, Problem> {
    let (repo, branch) = asked;
    api.queues.delete_queue(&caller, &repo, &branch).await?;
    Ok(Json(Empty {}))
}
