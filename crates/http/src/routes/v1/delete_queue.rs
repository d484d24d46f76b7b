//! `POST /v1/deleteQueue`.

use actix_web::web::{Data, Json};
use signalbox_domain::queue::Refusal;
use signalbox_domain::token::Compatibility;
use signalbox_services::Error;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, QueueRequest};
use crate::failures::OfDelete;
use crate::problem::{Code, Problem};

/// Delete an empty queue.
///
/// Cancel or merge its pull requests first. A token with the compatibility profile `v1-live` gets
/// 400 for a queue that is not empty, and 200 where there is no queue.
#[utoipa::path(
    post,
    path = "/v1/deleteQueue",
    operation_id = "deleteQueue",
    tag = "merge queue",
    request_body = QueueRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfDelete),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<QueueRequest>,
) -> Result<Json<Empty>, Problem> {
    let (repo, branch) = body;
    let deleted = api.queues.delete_queue(&caller, &repo, &branch).await;
    match (caller.compatibility, deleted) {
        (_, Ok(()))
        | (Compatibility::V1Live, Err(Error::UnknownQueue { .. } | Error::UnknownRepository(_))) => {
            Ok(Json(Empty {}))
        }
        (Compatibility::V1Live, Err(Error::Refused(refusal @ Refusal::QueueNotEmpty { .. }))) => {
            Err(Problem::new(Code::QueueNotEmptyLive, refusal.to_string()))
        }
        (Compatibility::Specification | Compatibility::V1Live, Err(error)) => Err(error.into()),
    }
}
