//! `POST /v1/reportCheckResult`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{CheckReported, CheckResultRequest, Empty};
use crate::failures::OfCheckResult;
use crate::problem::Problem;

/// Report the state of an external check, from the CI that runs it.
///
/// External checks have `external = true` in the `.signalbox.toml` of the target branch. The event
/// `test_run.checks_requested` has the test run, its branch, its commit and the names of the checks.
/// The commit must be the one that the run tests, and the first conclusion of a check is final. A
/// repeated report has no effect, also after the run has ended.
#[utoipa::path(
    post,
    path = "/v1/reportCheckResult",
    operation_id = "reportCheckResult",
    tag = "merge queue",
    request_body = CheckResultRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfCheckResult),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<CheckResultRequest>,
) -> Result<Json<Empty>, Problem> {
    let CheckReported { place: (repo, branch), run, result } = body;
    let result = result.of(run.parse()?);
    api.queues.report_check(&caller, &repo, &branch, result).await?;
    Ok(Json(Empty {}))
}
