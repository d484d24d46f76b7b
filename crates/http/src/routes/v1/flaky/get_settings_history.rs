//! `POST /v1/flaky-tests/get-settings-history`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{RepositoryRequest, SettingsHistoryReply};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// List the changes of the settings of flaky tests, with their authors.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/get-settings-history",
    operation_id = "getFlakySettingsHistory",
    tag = "flaky tests",
    request_body = RepositoryRequest,
    responses((status = OK, description = "The changes, newest first.", body = SettingsHistoryReply), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RepositoryRequest>,
) -> Result<Json<SettingsHistoryReply>, Problem> {
    let steps = api.flaky.service.settings_history(&caller, &body, 100).await?;
    Ok(Json(SettingsHistoryReply::of(&steps)))
}
