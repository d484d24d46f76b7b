//! `POST /v1/setImpactedTargets`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, SetTargets};
use crate::problem::{Problem, ProblemBody};

/// Report which targets a pull request touches. It need not be in the queue yet.
#[utoipa::path(
    post,
    path = "/v1/setImpactedTargets",
    operation_id = "setImpactedTargets",
    tag = "merge queue",
    request_body = SetTargets,
    responses(
        (status = OK, description = "Done.", body = Empty),
        (status = "4XX", description = "Refused.", body = ProblemBody, content_type = "application/problem+json"),
        (status = UNAUTHORIZED, description = "No valid token.", body = String, content_type = "text/plain"),
        (status = "5XX", description = "Failed.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn set_impacted_targets(
    api: Data<Api>,
    asked: Asked<SetTargets>,
) -> Result<Json<Empty>, Problem> {
    let (repo, branch) = asked.body.place()?;
    let pr = asked.body.pr();
    let targets = asked.body.targets()?;
    api.queues.set_targets(&asked.caller, &repo, &branch, pr, targets).await?;
    Ok(Json(Empty {}))
}
