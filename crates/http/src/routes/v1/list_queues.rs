//! `POST /v1/listQueues`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{QueuesReply, QueuesRequest, Words};
use crate::failures::OfQueues;
use crate::problem::Problem;

/// List the queues that the token may see, of one repository or of all.
///
/// Ordered by repository and branch, all in one reply.
#[utoipa::path(
    post,
    path = "/v1/listQueues",
    operation_id = "listQueues",
    tag = "merge queue",
    request_body = QueuesRequest,
    responses((status = OK, description = "The queues.", body = QueuesReply, example = json!({"queues": [{
        "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "targetBranch": "main",
        "state": "RUNNING", "mode": "SINGLE", "pausedReason": null, "freeze": null,
        "enqueuedPullRequestsCount": 3, "testRunsCount": 1
    }]})), OfQueues),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<QueuesRequest>,
) -> Result<Json<QueuesReply>, Problem> {
    let queues = api.queues.list(&caller, body.as_ref()).await?;
    Ok(Json(QueuesReply::of(&queues, Words(caller.compatibility.enum_case()))))
}
