//! `POST /v1/flaky-tests/get-settings`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{FlakySettingsReply, RepositoryRequest};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// Get the settings of flaky tests.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/get-settings",
    operation_id = "getFlakySettings",
    tag = "flaky tests",
    request_body = RepositoryRequest,
    responses((status = OK, description = "The settings.", body = FlakySettingsReply), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RepositoryRequest>,
) -> Result<Json<FlakySettingsReply>, Problem> {
    let settings = api.flaky.service.settings(&caller, &body).await?;
    Ok(Json(FlakySettingsReply::of(&settings)))
}
