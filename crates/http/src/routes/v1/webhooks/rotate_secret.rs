//! `POST /v1/webhooks/rotate-secret`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{CreatedWebhookReply, RotateWebhookRequest};
use crate::failures::OfWebhook;
use crate::problem::Problem;

/// Rotate the secret of an endpoint. Until the end of the overlap, messages are signed with both
/// secrets.
#[utoipa::path(
    post,
    path = "/v1/webhooks/rotate-secret",
    operation_id = "rotateWebhookSecret",
    tag = "webhooks",
    request_body = RotateWebhookRequest,
    responses((status = OK, description = "The endpoint and its new secret.", body = CreatedWebhookReply), OfWebhook),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<RotateWebhookRequest>,
) -> Result<Json<CreatedWebhookReply>, Problem> {
    let (id, overlap) = body;
    let rotated = api.webhooks.rotate_secret(&caller, id, overlap).await?;
    Ok(Json(CreatedWebhookReply::of(rotated)))
}
