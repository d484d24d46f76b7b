//! `POST /v1/flaky-tests/update-settings`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Settings;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{FlakySettingsReply, UpdateSettingsRequest};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// Change the settings of flaky tests; omitted fields are unchanged.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/update-settings",
    operation_id = "updateFlakySettings",
    tag = "flaky tests",
    request_body = UpdateSettingsRequest,
    responses((status = OK, description = "The settings after the change.", body = FlakySettingsReply), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<UpdateSettingsRequest>,
) -> Result<Json<FlakySettingsReply>, Problem> {
    let patch = |settings: &Settings| body.patch(settings.guard);
    let settings = api.flaky.service.update_settings(&caller, &body.repo, patch).await?;
    Ok(Json(FlakySettingsReply::of(&settings)))
}
