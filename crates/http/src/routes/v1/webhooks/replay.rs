//! `POST /v1/webhooks/replay`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{ReplayWebhookRequest, ReplayedReply};
use crate::failures::OfReplay;
use crate::problem::Problem;

/// Resend messages under the same ids: one, all that failed since a time, or all of a
/// period.
#[utoipa::path(
    post,
    path = "/v1/webhooks/replay",
    operation_id = "replayWebhook",
    tag = "webhooks",
    request_body = ReplayWebhookRequest,
    responses((status = OK, description = "The resent messages.", body = ReplayedReply), OfReplay),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<ReplayWebhookRequest>,
) -> Result<Json<ReplayedReply>, Problem> {
    let (id, what) = body;
    Ok(Json(ReplayedReply::of(api.webhooks.replay(&caller, id, what).await?)))
}
