//! `POST /v1/submitPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, Submit, SubmitRequest};
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
    Asked { caller, asked }: Asked<SubmitRequest>,
) -> Result<Json<Empty>, Problem> {
    let Submit { place: (repo, branch), pr, priority, no_batch } = asked;
    api.queues.submit(&caller, &repo, &branch, pr, priority, no_batch).await?;
    Ok(Json(Empty {}))
}
