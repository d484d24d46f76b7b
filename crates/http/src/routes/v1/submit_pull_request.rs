//! `POST /v1/submitPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, Submit};
use crate::problem::{Problem, ProblemBody};

/// Submit a pull request to the queue for testing and merging. Submitting a live entry again changes its priority and batching.
#[utoipa::path(
    post,
    path = "/v1/submitPullRequest",
    operation_id = "submitPullRequest",
    tag = "merge queue",
    request_body = Submit,
    responses(
        (status = OK, description = "Done.", body = Empty),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn submit_pull_request(
    api: Data<Api>,
    asked: Asked<Submit>,
) -> Result<Json<Empty>, Problem> {
    let (repo, branch) = asked.body.place()?;
    let priority = asked.body.priority()?;
    let (pr, no_batch) = (asked.body.pr(), asked.body.no_batch);
    api.queues.submit(&asked.caller, &repo, &branch, pr, priority, no_batch).await?;
    Ok(Json(Empty {}))
}
