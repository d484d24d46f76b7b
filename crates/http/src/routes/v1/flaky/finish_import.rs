//! `POST /v1/flaky-tests/finish-import`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{FinishedImportReply, RepositoryRequest};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// Finish an import: sums up what was imported since the last summary, and sends one event about it.
///
/// Call it when the uploads are read. Calling it again without an import in between sends nothing.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/finish-import",
    operation_id = "finishImport",
    tag = "flaky tests",
    request_body = RepositoryRequest,
    responses((status = OK, description = "What was imported, and the tests after it.", body = FinishedImportReply), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RepositoryRequest>,
) -> Result<Json<FinishedImportReply>, Problem> {
    let summary = api.flaky.service.finish_import(&caller, &body).await?;
    Ok(Json(FinishedImportReply::of(&summary)))
}
