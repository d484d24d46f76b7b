//! `POST /v1/createQueue`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::change_source::Source;
use crate::dto::{Create, CreateRequest, Empty};
use crate::failures::OfCreate;
use crate::problem::Problem;

/// Create the queue of a branch.
#[utoipa::path(
    post,
    path = "/v1/createQueue",
    operation_id = "createQueue",
    tag = "merge queue",
    params(Source),
    request_body = CreateRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfCreate),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Source(source): Source,
    AuthenticatedJson { caller, body }: AuthenticatedJson<CreateRequest>,
) -> Result<Json<Empty>, Problem> {
    let Create { place: (repo, branch), mode, concurrency } = body;
    api.queues.create_queue(&caller, &repo, &branch, mode, concurrency, source).await?;
    Ok(Json(Empty {}))
}
