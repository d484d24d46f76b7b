//! `POST /v1/flaky-tests/list-unhealthy-tests`.

use super::listed;
use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{UnhealthyReply, UnhealthyRequest};
use crate::failures::OfTests;
use crate::problem::Problem;

/// List flaky or broken tests.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/list-unhealthy-tests",
    operation_id = "listUnhealthyTests",
    tag = "flaky tests",
    request_body = UnhealthyRequest,
    responses((status = OK, description = "A page of tests, in the order of their ids.", body = UnhealthyReply, example = json!({"tests": [{
            "id": "06cb6db5-f807-5198-b072-af67a0636f8a",
            "repository": {"html_url": "https://github.com/acme/calc"},
            "html_url": "https://ci.example/acme/flaky-tests/test/06cb6db5-f807-5198-b072-af67a0636f8a?repo=acme%2Fcalc",
            "name": "adds", "variant": "", "status": {"value": "flaky",
                "reason": "pass_on_retry: failed and passed on commit 1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70",
                "timestamp": "2026-01-01T00:00:00.000Z"},
            "file_path": "tests/calc.rs", "classname": "Calc", "codeowners": ["@acme/calc"],
            "pull_requests_impacted_last_7d": 2, "quarantined": true,
            "ticket": {"html_url": "https://tickets.example/KAN-123"}
        }], "page": {
            "total_rows": 1, "total_pages": 1, "page_index": 0, "next_page_token": "",
            "prev_page_token": "", "last_page_token": "24…"
        }})), OfTests),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<UnhealthyRequest>,
) -> Result<Json<UnhealthyReply>, Problem> {
    let (listed, page) = listed(&api, &caller, "listUnhealthyTests", &body).await?;
    let tests = UnhealthyReply::tests(&listed, &api.flaky.links);
    Ok(Json(UnhealthyReply { tests, page }))
}
