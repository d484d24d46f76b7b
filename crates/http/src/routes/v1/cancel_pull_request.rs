//! `POST /v1/cancelPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
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
    AuthenticatedJson { caller, body }: AuthenticatedJson<PullRequestRequest>,
) -> Result<Json<Empty>, Problem> {
    let ((repo, branch), pr) = body;
    api.queues.cancel(&caller, &repo, &branch, pr).await?;
    Ok(Json(Empty {}))
}
