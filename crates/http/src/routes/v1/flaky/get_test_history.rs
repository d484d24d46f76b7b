//! `POST /v1/flaky-tests/get-test-history`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{HistoryReply, HistoryRequest};
use crate::failures::OfTest;
use crate::problem::Problem;

/// List the changes of a test's status, flag and quarantine, with their reasons.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/get-test-history",
    operation_id = "getTestHistory",
    tag = "flaky tests",
    request_body = HistoryRequest,
    responses((status = OK, description = "At most 100 steps, newest first.", body = HistoryReply), OfTest),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<HistoryRequest>,
) -> Result<Json<HistoryReply>, Problem> {
    let (repo, test, before) = body;
    let before = before.map(u64::from);
    let records = api.flaky.service.history(&caller, &repo, test, before, 100).await?;
    Ok(Json(HistoryReply::of(&records)))
}
