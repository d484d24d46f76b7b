//! `POST /v1/flaky-ci/create-ci-run`.

use actix_web::web::{Data, Json};
use signalbox_domain::token::Scope;

use super::own_org;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{CiRunReply, CiRunRequest};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// Announce a CI run.
#[utoipa::path(
    post,
    path = "/v1/flaky-ci/create-ci-run",
    operation_id = "createCiRun",
    tag = "flaky tests",
    request_body = CiRunRequest,
    responses((status = OK, description = "The id of the run.", body = CiRunReply, example = json!({"run_id": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"})), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<CiRunRequest>,
) -> Result<Json<CiRunReply>, Problem> {
    let (repo, org, document) = body;
    own_org(&caller, Scope::TestsUpload, &org, &repo)?;
    let id = api.flaky.service.add_ci_run(&caller, &repo, document).await?;
    Ok(Json(CiRunReply { run_id: id.to_string() }))
}
