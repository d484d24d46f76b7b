//! `POST /v1/submitPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, SubmitRequest};
use crate::failures::OfSubmit;
use crate::problem::Problem;

/// Submit a pull request to the queue for testing and merging.
///
/// It is tested once it is ready. Submitting it again while it is in the queue changes its
/// priority and batching.
#[utoipa::path(
    post,
    path = "/v1/submitPullRequest",
    operation_id = "submitPullRequest",
    tag = "merge queue",
    request_body = SubmitRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfSubmit),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<SubmitRequest>,
) -> Result<Json<Empty>, Problem> {
    let ((repo, branch), pr, options) = body;
    api.queues.submit(&caller, &repo, &branch, pr, options).await?;
    Ok(Json(Empty {}))
}
