//! `POST /v1/flaky-tests/override-quarantine`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Command;
use signalbox_services::FlakyService;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, tests::OverrideRequest};
use crate::failures::OfOverride;
use crate::problem::Problem;

/// Override the quarantine of a test: always, never, or follow the settings.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/override-quarantine",
    operation_id = "overrideQuarantine",
    tag = "flaky tests",
    request_body = OverrideRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfOverride),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<OverrideRequest>,
) -> Result<Json<Empty>, Problem> {
    let command = Command::SetQuarantine {
        setting: body.setting,
        expires_at: body.expires_at,
        reason: body.reason,
        by: FlakyService::actor(&caller),
    };
    api.flaky.service.command(&caller, &body.repo, body.test, command).await?;
    Ok(Json(Empty {}))
}
