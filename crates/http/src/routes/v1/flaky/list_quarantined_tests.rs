//! `POST /v1/flaky-tests/list-quarantined-tests`.

use super::listed;
use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{QuarantinedReply, QuarantinedRequest};
use crate::failures::OfTests;
use crate::problem::Problem;

/// List the quarantined tests, whose failures count as passed.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/list-quarantined-tests",
    operation_id = "listQuarantinedTests",
    tag = "flaky tests",
    request_body = QuarantinedRequest,
    responses((status = OK, description = "A page of tests, in the order of their ids.", body = QuarantinedReply, example = json!({"quarantined_tests": [{
            "test_case_id": "06cb6db5-f807-5198-b072-af67a0636f8a", "name": "adds", "parent": null,
            "file": "tests/calc.rs", "classname": "Calc", "variant": "", "status": "FLAKY",
            "codeowners": ["@acme/calc"], "quarantine_setting": "AUTO_QUARANTINE",
            "quarantined_at": "2026-01-01T00:00:00.000Z",
            "status_last_updated_at": "2026-01-01T00:00:00.000Z"
        }], "page": {
            "total_rows": 1, "total_pages": 1, "page_index": 0, "next_page_token": "",
            "prev_page_token": "", "last_page_token": "24…"
        }})), OfTests),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<QuarantinedRequest>,
) -> Result<Json<QuarantinedReply>, Problem> {
    let (listed, page) = listed(&api, &caller, "listQuarantinedTests", &body).await?;
    let quarantined_tests = QuarantinedReply::tests(&listed);
    Ok(Json(QuarantinedReply { quarantined_tests, page }))
}
