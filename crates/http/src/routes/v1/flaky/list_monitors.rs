//! `POST /v1/flaky-tests/list-monitors`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{MonitorReply, MonitorsReply, RepositoryRequest};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// List the monitors of a repository.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/list-monitors",
    operation_id = "listMonitors",
    tag = "flaky tests",
    request_body = RepositoryRequest,
    responses((status = OK, description = "The monitors.", body = MonitorsReply, example = json!({"monitors": []})), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RepositoryRequest>,
) -> Result<Json<MonitorsReply>, Problem> {
    let settings = api.flaky.service.settings(&caller, &body).await?;
    let monitors = settings.monitors.iter().map(MonitorReply::of).collect();
    Ok(Json(MonitorsReply { monitors }))
}
