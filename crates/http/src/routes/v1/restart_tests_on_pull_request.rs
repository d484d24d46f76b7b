//! `POST /v1/restartTestsOnPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, PullRequestRequest};
use crate::failures::OfRestart;
use crate::problem::Problem;

/// Restart the tests of a pull request; it keeps its position.
///
/// Only a pull request in the state `TESTING` or `PENDING_FAILURE` has tests to restart.
#[utoipa::path(
    post,
    path = "/v1/restartTestsOnPullRequest",
    operation_id = "restartTestsOnPullRequest",
    tag = "merge queue",
    request_body = PullRequestRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfRestart),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<PullRequestRequest>,
) -> Result<Json<Empty>, Problem> {
    let ((repo, branch), pr) = body;
    api.queues.restart(&caller, &repo, &branch, pr).await?;
    Ok(Json(Empty {}))
}
