//! `POST /v1/updateQueue`.

use actix_web::web::{Data, Json};
use signalbox_services::QueueChange;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::change_source::Source;
use crate::dto::{SettingsReply, Update, UpdateRequest, Words};
use crate::failures::OfUpdate;
use crate::problem::Problem;

/// Change a queue's settings or state.
///
/// Omitted fields are unchanged. The reply shows the requested values: a change of mode that
/// waits until the line is empty shows the new mode, and only getQueue shows
/// `SWITCHING_MODES`.
#[utoipa::path(
    post,
    path = "/v1/updateQueue",
    operation_id = "updateQueue",
    tag = "merge queue",
    params(Source),
    request_body = UpdateRequest,
    responses((status = OK, description = "The queue after the change.", body = SettingsReply, example = json!(SettingsReply::example())), OfUpdate),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Source(source): Source,
    AuthenticatedJson { caller, body }: AuthenticatedJson<UpdateRequest>,
) -> Result<Json<SettingsReply>, Problem> {
    let Update { place: (repo, branch), settings, state, reason } = body;
    let change = QueueChange { settings, state, reason, source };
    let queue = api.queues.update_queue(&caller, &repo, &branch, change).await?;
    Ok(Json(SettingsReply::after_update(&queue, Words(caller.compatibility.enum_case()))))
}
