//! `POST /v1/webhooks/get`.

use actix_web::web::{Data, Json};

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::dto::webhooks::{WebhookReply, WebhookRequest};
use crate::failures::OfWebhook;
use crate::problem::Problem;

/// Get an endpoint.
#[utoipa::path(
    post,
    path = "/v1/webhooks/get",
    operation_id = "getWebhook",
    tag = "webhooks",
    request_body = WebhookRequest,
    responses((status = OK, description = "The endpoint.", body = WebhookReply), OfWebhook),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    AuthenticatedJson { caller, body }: AuthenticatedJson<WebhookRequest>,
) -> Result<Json<WebhookReply>, Problem> {
    let endpoint = api.webhooks.endpoint(&caller, body).await?;
    Ok(Json(WebhookReply::of(&endpoint)))
}
