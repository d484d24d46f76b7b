//! `POST /v1/flaky-tests/get-test-details`.

use actix_web::web::{Data, Json};
use signalbox_domain::token::Scope;

use super::own_org;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{DetailsRequest, TestCaseReply, TestReply};
use crate::failures::OfTest;
use crate::problem::Problem;

/// Get a test.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/get-test-details",
    operation_id = "getTestDetails",
    tag = "flaky tests",
    request_body = DetailsRequest,
    responses((status = OK, description = "The test.", body = TestReply, example = json!({"test": {
            "id": "06cb6db5-f807-5198-b072-af67a0636f8a",
            "repository": {"html_url": "https://github.com/acme/calc"},
            "html_url": "https://ci.example/acme/flaky-tests/test/06cb6db5-f807-5198-b072-af67a0636f8a?repo=acme%2Fcalc",
            "name": "adds", "variant": "", "status": {"value": "flaky",
                "reason": "pass_on_retry: failed and passed on commit 1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70",
                "timestamp": "2026-01-01T00:00:00.000Z"},
            "most_common_failures": [{"summary": "expected <num>, got <num>",
                "occurrence_count": 3, "last_occurrence": "2026-01-01T00:00:00.000Z"}],
            "failure_rate_last_7d": 0.125, "failure_rate_last_24h": 0.5,
            "file_path": "tests/calc.rs", "classname": "Calc", "codeowners": ["@acme/calc"],
            "pull_requests_impacted_last_7d": 2, "quarantined": true,
            "ticket": {"html_url": "https://tickets.example/KAN-123"}
        }})), OfTest),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<DetailsRequest>,
) -> Result<Json<TestReply>, Problem> {
    let (repo, org, test) = body;
    own_org(&caller, Scope::TestsRead, &org, &repo)?;
    let snapshot = api.flaky.service.test(&caller, &repo, test).await?;
    let test = TestCaseReply::of(&snapshot, &api.flaky.links);
    Ok(Json(TestReply { test }))
}
