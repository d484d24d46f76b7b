//! `POST /v1/flaky-tests/list-failures-of-test-run`.

use actix_web::web::{Data, Json};
use signalbox_domain::ids::RunId;
use signalbox_domain::token::Scope;
use signalbox_services::Error;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{RunFailuresReply, RunFailuresRequest};
use crate::failures::OfRuns;
use crate::problem::Problem;

/// List the tests that failed in a test run of a queue, and which of them are known to be flaky.
///
/// From the reports on the run's candidate; none while it is being built. Considers at most 1,000
/// failing attempts. The token needs `queue:read` and `tests:read`.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/list-failures-of-test-run",
    operation_id = "listFailuresOfTestRun",
    tag = "flaky tests",
    request_body = RunFailuresRequest,
    responses((status = OK, description = "The tests, in the order of their ids.", body = RunFailuresReply, example = json!({"tests": [{
            "id": "06cb6db5-f807-5198-b072-af67a0636f8a",
            "html_url": "https://ci.example/acme/flaky-tests/test/06cb6db5-f807-5198-b072-af67a0636f8a?repo=acme%2Fcalc",
            "name": "adds", "variant": "", "file_path": "tests/calc.rs",
            "status": {"value": "flaky",
                "reason": "pass_on_retry: failed and passed on commit 1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70",
                "timestamp": "2026-01-01T00:00:00.000Z"},
            "known_flaky": true, "quarantined": true, "excused": true, "failures": 2,
            "failed_at": "2026-01-02T00:00:00.000Z", "message": "expected 5, got 4"
        }]})), OfRuns),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RunFailuresRequest>,
) -> Result<Json<RunFailuresReply>, Problem> {
    if !caller.may(Scope::TestsRead) {
        return Err(Error::MissingScope(Scope::TestsRead).into());
    }
    let ((repo, branch), run) = body;
    let snapshot = api.queues.run(&caller, &repo, &branch, RunId(run)).await?;
    let failures = api.flaky.service.failures_of(&caller, &repo, &snapshot.run).await?;
    Ok(Json(RunFailuresReply::of(&failures, &api.flaky.links)))
}
