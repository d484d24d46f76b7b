//! `POST /v1/setImpactedTargets`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, SetTargets, TargetsRequest};
use crate::failures::OfQueue;
use crate::problem::Problem;

/// Report which targets a pull request touches, for queues in PARALLEL mode.
///
/// The pull request need not be in the queue yet.
#[utoipa::path(
    post,
    path = "/v1/setImpactedTargets",
    operation_id = "setImpactedTargets",
    tag = "merge queue",
    request_body = TargetsRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfQueue),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Asked { caller, asked }: Asked<TargetsRequest>,
) -> Result<Json<Empty>, Problem> {
    let SetTargets { place: (repo, branch), pr, targets } = asked;
    api.queues.set_targets(&caller, &repo, &branch, pr, targets).await?;
    Ok(Json(Empty {}))
}
