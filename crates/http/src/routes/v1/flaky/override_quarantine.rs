//! `POST /v1/flaky-tests/override-quarantine`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Command;
use signalbox_services::FlakyService;

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, tests::OverrideRequest};
use crate::failures::OfTest;
use crate::problem::Problem;

/// Decide about the quarantine of a test: always, never, or as the settings say.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/override-quarantine",
    operation_id = "overrideQuarantine",
    tag = "flaky tests",
    request_body = OverrideRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfTest),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Asked { caller, asked }: Asked<OverrideRequest>,
) -> Result<Json<Empty>, Problem> {
    let command = Command::SetQuarantine {
        setting: asked.setting,
        expires_at: asked.expires_at,
        reason: asked.reason,
        by: FlakyService::actor(&caller),
    };
    api.flaky.service.command(&caller, &asked.repo, asked.test, command).await?;
    Ok(Json(Empty {}))
}
