//! `POST /v1/flaky-tests/decide-incident`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::tests::{DecideIncidentRequest, IncidentReply};
use crate::failures::OfIncident;
use crate::problem::Problem;

/// Confirm an incident, so that its failures stay excluded, or dismiss it, so that they count.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/decide-incident",
    operation_id = "decideIncident",
    tag = "flaky tests",
    request_body = DecideIncidentRequest,
    responses((status = OK, description = "The incident as it is now.", body = IncidentReply), OfIncident),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<DecideIncidentRequest>,
) -> Result<Json<IncidentReply>, Problem> {
    let (repo, incident, confirm, reason) = body;
    let service = &api.flaky.service;
    let incident = service.decide_incident(&caller, &repo, incident, confirm, reason).await?;
    Ok(Json(IncidentReply::of(&incident)))
}
