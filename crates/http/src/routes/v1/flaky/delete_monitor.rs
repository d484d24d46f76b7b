//! `POST /v1/flaky-tests/delete-monitor`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, tests::MonitorRequest};
use crate::failures::OfMonitor;
use crate::problem::Problem;

/// Delete a monitor: it resolves for every test immediately.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/delete-monitor",
    operation_id = "deleteMonitor",
    tag = "flaky tests",
    request_body = MonitorRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfMonitor),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<MonitorRequest>,
) -> Result<Json<Empty>, Problem> {
    let (repo, id) = body;
    api.flaky.service.delete_monitor(&caller, &repo, id).await?;
    Ok(Json(Empty {}))
}
