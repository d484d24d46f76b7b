//! `POST /v1/flaky-tests/mute-monitor`.

use actix_web::web::{Data, Json};
use signalbox_domain::flaky::Command;
use signalbox_services::FlakyService;

use crate::api::Api;
use crate::body::Asked;
use crate::dto::{Empty, tests::MuteRequest};
use crate::failures::OfMute;
use crate::problem::Problem;

/// Let a monitor not count for a test for a while, or let it count again.
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
    Asked { caller, asked }: Asked<MuteRequest>,
) -> Result<Json<Empty>, Problem> {
    let (monitor, by) = (asked.monitor, FlakyService::actor(&caller));
    let command = match asked.length {
        Some(length) => Command::Mute { monitor, length, reason: asked.reason, by },
        None => Command::Unmute { monitor, by },
    };
    api.flaky.service.command(&caller, &asked.repo, asked.test, command).await?;
    Ok(Json(Empty {}))
}
