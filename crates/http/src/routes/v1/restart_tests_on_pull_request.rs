//! `POST /v1/restartTestsOnPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, PullRequestCommand};
use crate::problem::{Problem, ProblemBody};

/// Run the tests of a pull request once more, in its place. Only one that is TESTING or PENDING_FAILURE has tests to restart.
#[utoipa::path(
    post,
    path = "/v1/restartTestsOnPullRequest",
    operation_id = "restartTestsOnPullRequest",
    tag = "merge queue",
    request_body = PullRequestCommand,
    responses(
        (status = OK, description = "Done.", body = Empty),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn restart_tests_on_pull_request(
    api: Data<Api>,
    asked: Asked<PullRequestCommand>,
) -> Result<Json<Empty>, Problem> {
    let (repo, branch) = asked.body.place()?;
    api.queues.restart(&asked.caller, &repo, &branch, asked.body.pr()).await?;
    Ok(Json(Empty {}))
}
