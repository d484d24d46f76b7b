//! `POST /v1/getQueue`.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use actix_web::web::Data;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{QueueReply, QueueRequest};
use crate::failures::OfQueue;
use crate::problem::Problem;

/// Get a queue: its state, its settings and its pull requests.
#[utoipa::path(
    post,
    path = "/v1/getQueue",
    operation_id = "getQueue",
    tag = "merge queue",
    request_body = QueueRequest,
    responses((status = OK, description = "The queue.", body = QueueReply, example = json!(QueueReply::example())), OfQueue),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<QueueRequest>,
) -> Result<HttpResponse, Problem> {
    let (repo, branch) = body;
    let queue = api.queues.queue(&caller, &repo, &branch).await?;
    let body = api.queue_replies.of(&queue, caller.compatibility.enum_case())?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(body))
}
