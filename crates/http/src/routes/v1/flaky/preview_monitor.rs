//! `POST /v1/flaky-tests/preview-monitor`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::body::Asked;
use crate::dto::tests::{PreviewMonitorRequest, PreviewReply};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// See what a monitor would find now, without creating it.
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
    Asked { caller, asked }: Asked<PreviewMonitorRequest>,
) -> Result<Json<PreviewReply>, Problem> {
    let (repo, monitor) = asked;
    let preview = api.flaky.service.preview(&caller, &repo, &monitor).await?;
    Ok(Json(PreviewReply::of(&preview)))
}
