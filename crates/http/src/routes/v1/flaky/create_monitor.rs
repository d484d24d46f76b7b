//! `POST /v1/flaky-tests/create-monitor`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{CreateMonitorRequest, MonitorReply, WithParameters};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// Create a monitor.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/create-monitor",
    operation_id = "createMonitor",
    tag = "flaky tests",
    request_body = CreateMonitorRequest,
    responses((status = OK, description = "The monitor.", body = MonitorReply), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<WithParameters<CreateMonitorRequest>>,
) -> Result<Json<MonitorReply>, Problem> {
    let (repo, monitor) = body;
    let monitor = api.flaky.service.create_monitor(&caller, &repo, monitor).await?;
    Ok(Json(MonitorReply::of(&monitor)))
}
