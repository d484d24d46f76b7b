//! `POST /v1/cancelPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, PullRequestRequest};
use crate::failures::OfCancel;
use crate::problem::Problem;

/// Remove a pull request from the queue.
#[utoipa::path(
    post,
    path = "/v1/cancelPullRequest",
    operation_id = "cancelPullRequest",
    tag = "merge queue",
    request_body = PullRequestRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfCancel),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Asked { caller, asked }: Asked<PullRequestRequest>,
) -> Result<Json<Empty>, Problem> {
    let ((repo, branch), pr) = asked;
    api.queues.cancel(&caller, &repo, &branch, pr).await?;
    Ok(Json(Empty {}))
}
