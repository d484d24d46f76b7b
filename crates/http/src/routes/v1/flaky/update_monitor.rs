//! `POST /v1/flaky-tests/update-monitor`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Monitor;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{MonitorReply, UpdateMonitorRequest, WithParameters};
use crate::failures::OfMonitor;
use crate::problem::Problem;

/// Change a monitor; omitted fields are unchanged. A disabled monitor resolves for every test
/// immediately.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/update-monitor",
    operation_id = "updateMonitor",
    tag = "flaky tests",
    request_body = UpdateMonitorRequest,
    responses((status = OK, description = "The monitor after the change.", body = MonitorReply), OfMonitor),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<WithParameters<UpdateMonitorRequest>>,
) -> Result<Json<MonitorReply>, Problem> {
    let (repo, id, change) = body;
    let changed = |monitor: &Monitor| Ok(change.applied_to(monitor));
    let monitor = api.flaky.service.update_monitor(&caller, &repo, id, changed).await?;
    Ok(Json(MonitorReply::of(&monitor)))
}
