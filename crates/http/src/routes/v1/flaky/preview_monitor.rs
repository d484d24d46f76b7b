//! `POST /v1/flaky-tests/preview-monitor`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{PreviewMonitorRequest, PreviewReply, WithParameters};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// Preview the tests that a monitor would find now, without creating it.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/preview-monitor",
    operation_id = "previewMonitor",
    tag = "flaky tests",
    request_body = PreviewMonitorRequest,
    responses((status = OK, description = "The tests that it would find.", body = PreviewReply), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<WithParameters<PreviewMonitorRequest>>,
) -> Result<Json<PreviewReply>, Problem> {
    let (repo, monitor) = body;
    let preview = api.flaky.service.preview(&caller, &repo, &monitor).await?;
    Ok(Json(PreviewReply::of(&preview)))
}
