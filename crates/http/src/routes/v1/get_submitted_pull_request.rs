//! `POST /v1/getSubmittedPullRequest`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{EntryQuery, EntryReply, Words};
use crate::problem::{Problem, ProblemBody};

/// Read the status of a submitted pull request, also after it has left the queue.
#[utoipa::path(
    post,
    path = "/v1/getSubmittedPullRequest",
    operation_id = "getSubmittedPullRequest",
    tag = "merge queue",
    request_body = EntryQuery,
    responses(
        (status = OK, description = "Done.", body = EntryReply),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn get_submitted_pull_request(
    api: Data<Api>,
    asked: Asked<EntryQuery>,
) -> Result<Json<EntryReply>, Problem> {
    let (repo, branch) = asked.body.place()?;
    let query = asked.body.query()?;
    let snapshot = api.queues.entry(&asked.caller, &repo, &branch, &query).await?;
    Ok(Json(EntryReply::of(&snapshot, Words(asked.caller.enum_case))))
}
