//! `POST /v1/flaky-tests/list-incidents`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{IncidentReply, IncidentsReply, RepositoryRequest};
use crate::failures::OfSettings;
use crate::problem::Problem;

/// List the incidents of a repository: many tests that failed together.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/list-incidents",
    operation_id = "listIncidents",
    tag = "flaky tests",
    request_body = RepositoryRequest,
    responses((status = OK, description = "The incidents, the newest first, at most 100.", body = IncidentsReply, example = json!({"incidents": []})), OfSettings),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RepositoryRequest>,
) -> Result<Json<IncidentsReply>, Problem> {
    let incidents = api.flaky.service.incidents(&caller, &body).await?;
    let incidents = incidents.iter().map(IncidentReply::of).collect();
    Ok(Json(IncidentsReply { incidents }))
}
