//! `POST /v1/flaky-tests/mute-monitor`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Command;
use signalbox_services::FlakyService;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::{Empty, tests::MuteRequest};
use crate::failures::OfMute;
use crate::problem::Problem;

/// Mute a monitor for a test for some time, or unmute it.
#[utoipa::path(
    post,
    path = "/v1/flaky-tests/mute-monitor",
    operation_id = "muteMonitor",
    tag = "flaky tests",
    request_body = MuteRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfMute),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<MuteRequest>,
) -> Result<Json<Empty>, Problem> {
    let (monitor, by) = (body.monitor, FlakyService::actor(&caller));
    let command = match body.length {
        Some(length) => Command::Mute { monitor, length, reason: body.reason, by },
        None => Command::Unmute { monitor, by },
    };
    api.flaky.service.command(&caller, &body.repo, body.test, command).await?;
    Ok(Json(Empty {}))
}
