//! `POST /v1/flaky-tests/flag-test`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Command;
use signalbox_services::FlakyService;

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, tests::FlagRequest};
use crate::failures::OfFlag;
use crate::problem::Problem;

/// Flag a test as flaky, whatever monitors say, or take that back.
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
    Asked { caller, asked }: Asked<FlagRequest>,
) -> Result<Json<Empty>, Problem> {
    let (repo, test, flagged, reason) = asked;
    let by = FlakyService::actor(&caller);
    let command =
        if flagged { Command::Flag { reason, by } } else { Command::Unflag { reason, by } };
    api.flaky.service.command(&caller, &repo, test, command).await?;
    Ok(Json(Empty {}))
}
