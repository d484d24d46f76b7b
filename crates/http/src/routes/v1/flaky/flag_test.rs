//! `POST /v1/flaky-tests/flag-test`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Command;
use signalbox_services::FlakyService;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, tests::FlagRequest};
use crate::failures::OfFlag;
use crate::problem::Problem;

/// Flag a test as flaky independently of the monitors, or remove the flag.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/flag-test",
    operation_id = "flagTest",
    tag = "flaky tests",
    request_body = FlagRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfFlag),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<FlagRequest>,
) -> Result<Json<Empty>, Problem> {
    let (repo, test, flagged, reason) = body;
    let by = FlakyService::actor(&caller);
    let command =
        if flagged { Command::Flag { reason, by } } else { Command::Unflag { reason, by } };
    api.flaky.service.command(&caller, &repo, test, command).await?;
    Ok(Json(Empty {}))
}
